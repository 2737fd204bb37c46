"""A small convolutional network over the words of a clause: its scores of praise, blame, no stance and what is missing.

A word is its vector (`text.vectors`) and its role (`stance_features`). Two convolutions, then the highest, the mean and
a weighted mean over the words, and what relates the clause to the answer. Trained by `benchmarks/train_stance.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load

from text2grad.align.stance_features import find_roles, split_tokens
from text2grad.text.stems import stem
from text2grad.text.vectors import DIMENSIONS, word_vector

Floats = NDArray[np.float32]

ROLE_LETTERS = "PBFSNMCWIXTVvHmAosayckdLiuK?wQq"
MAX_WORDS = 40
DILATIONS = (1, 2)
VECTOR_SCALE = 4.0  # vectors of length 1 have small components


def describe_words(masked: str) -> tuple[Floats, list[int]]:
    """Return the vectors of a clause's words, (words, dimensions), and the numbers of their roles, 0 for none."""
    tokens = split_tokens(masked)[:MAX_WORDS] or [""]
    roles = [ROLE_LETTERS.find(letter) + 1 if letter else 0 for letter in find_roles(tokens)[0]]
    return VECTOR_SCALE * np.stack([_vector(token) for token in tokens]), roles


@lru_cache(maxsize=1 << 14)
def _vector(token: str) -> Floats:
    found = word_vector(token)
    found = word_vector(stem(token)) if found is None and token.isalpha() else found
    return np.zeros(DIMENSIONS, np.float32) if found is None else found


def score_clause(masked: str, context: Sequence[str] = ()) -> Floats:
    """Return the scores of good, poor, unsure (their softmax is a probability) and of missing (its sigmoid is).

    masked: the clause, quotations replaced. context: see `stance_context`; empty where the answer is unknown.
    """
    weights, names = _load()
    vectors, roles = describe_words(masked)
    words = np.concatenate([vectors, weights["roles"][roles]], axis=1)
    hidden = np.zeros(0, np.float32)
    for number, dilation in enumerate(DILATIONS):
        found = _convolve(words if not number else hidden, weights[f"conv{number}"], weights[f"bias{number}"], dilation)
        hidden = hidden + found if number else found
    scores = hidden @ weights["attention"]
    shares = np.exp(scores - scores.max())
    attended = shares @ hidden / shares.sum()
    known = [names[name] for name in context if name in names]
    pooled = np.concatenate([hidden.max(0), hidden.mean(0), attended, weights["context"][known].sum(0)])
    result: Floats = pooled @ weights["out"] + weights["out_bias"]
    return result


def _convolve(inputs: Floats, kernel: Floats, bias: Floats, dilation: int) -> Floats:
    """Return gelu of a convolution over three words, (words, outputs). kernel: (3, inputs, outputs)."""
    count = len(inputs)
    padded = np.pad(inputs, ((dilation, dilation), (0, 0)))
    total = bias + sum(padded[k * dilation : k * dilation + count] @ kernel[k] for k in range(3))
    result: Floats = 0.5 * total * (1 + np.tanh(0.7978845608 * (total + 0.044715 * total**3)))
    return result


@lru_cache(maxsize=1)
def _load() -> tuple[dict[str, Floats], dict[str, int]]:
    return parse(load(files("text2grad.align").joinpath("weights/stance_net.safetensors").read_bytes()))


def parse(data: Mapping[str, NDArray[Any]]) -> tuple[dict[str, Floats], dict[str, int]]:
    """Return the weights, and the numbers of the features of context, from arrays as they are stored."""
    names = data["names"].tobytes().decode().split("\n")
    weights = {name: array.astype(np.float32) for name, array in data.items() if name != "names"}
    return weights, {name: i for i, name in enumerate(names)}
