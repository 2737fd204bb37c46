"""Vectors of common English words, in which words of similar meaning are close (`benchmarks/train_vectors.py`)."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load

Vector = NDArray[np.float32]

DIMENSIONS = 48


def word_vector(word: str) -> Vector | None:
    """Return the vector of a word, of length 1, or None for an uncommon one. Case does not matter."""
    index, vectors = _table()
    row = index.get(word.lower())
    return None if row is None else vectors[row]


@cache
def _table() -> tuple[dict[str, int], NDArray[np.float32]]:
    data = load(files("text2grad.text").joinpath("weights/vectors.safetensors").read_bytes())
    vectors = data["vectors"].astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return {word: row for row, word in enumerate(data["words"].tobytes().decode().split("\n"))}, vectors
