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

from text2grad.align.stance.stance_features import find_roles, split_tokens
from text2grad.text.stems import stem
from text2grad.text.vectors import DIMENSIONS, word_vector

Floats = NDArray[np.float32]

ROLE_LETTERS = "PBFSNMCWIXTVvHmAosayckdLiuK?wQq"
MAX_WORDS = 40
DILATIONS = (1, 2)
_GAP = max(DILATIONS)  # words between two clauses that are read together, so that neither sees the other
VECTOR_SCALE = 4.0  # vectors of length 1 have small components


def describe_words(masked: str) -> tuple[Floats, list[int]]:
    """Return the vectors of a clause's words, (words, dimensions), and the numbers of their roles, 0 for none."""
    tokens = split_tokens(masked)[:MAX_WORDS] or [""]
    roles = [ROLE_LETTERS.find(letter) + 1 if letter else 0 for letter in find_roles(tokens)[0]]
    return np.array([_vector(token) for token in tokens]), roles


@lru_cache(maxsize=1 << 14)
def _vector(token: str) -> Floats:
    found = word_vector(token)
    found = word_vector(stem(token)) if found is None and token.isalpha() else found
    return np.zeros(DIMENSIONS, np.float32) if found is None else VECTOR_SCALE * found


def score_clauses(masked: Sequence[str], contexts: Sequence[Sequence[str]]) -> Floats:
    """Return per clause the scores of good, poor, unsure (their softmax is a probability) and of missing, (clauses, 4).

    masked: the clauses, quotations replaced. contexts: see `stance_context`; empty where the answer is unknown.
    """
    weights, names = _load()
    described = [describe_words(text) for text in masked]
    lengths = [len(roles) for _, roles in described]
    starts = [sum(lengths[:i]) + i * _GAP for i in range(len(lengths))]  # all clauses in one row, zeros between them
    total = starts[-1] + lengths[-1]
    width = weights["conv0"].shape[1]
    words, inside = np.zeros((total, width), np.float32), np.zeros((total, 1), np.float32)
    for start, length, (vectors, roles) in zip(starts, lengths, described, strict=True):
        words[start : start + length, : vectors.shape[1]] = vectors
        words[start : start + length, vectors.shape[1] :] = weights["roles"][roles]
        inside[start : start + length] = 1
    hidden = _convolve(words, weights["conv0"], weights["bias0"], DILATIONS[0]) * inside
    hidden = hidden + _convolve(hidden, weights["conv1"], weights["bias1"], DILATIONS[1])
    scores = hidden @ weights["attention"]
    pooled = []
    for start, length, context in zip(starts, lengths, contexts, strict=True):
        own, shares = hidden[start : start + length], scores[start : start + length]
        shares = np.exp(shares - shares.max())
        known = [names[name] for name in context if name in names]
        attended = shares @ own / shares.sum()
        pooled.append(np.concatenate([own.max(0), own.sum(0) / length, attended, weights["context"][known].sum(0)]))
    result: Floats = np.array(pooled) @ weights["out"] + weights["out_bias"]
    return result


def _convolve(inputs: Floats, kernel: Floats, bias: Floats, dilation: int) -> Floats:
    """Return gelu of a convolution over three words, (words, outputs). kernel: (3, inputs, outputs)."""
    count, size = inputs.shape
    windows = np.zeros((count, 3, size), np.float32)
    windows[dilation:, 0] = inputs[:-dilation]
    windows[:, 1] = inputs
    windows[:-dilation, 2] = inputs[dilation:]
    total = windows.reshape(count, 3 * size) @ kernel.reshape(3 * size, -1) + bias
    result: Floats = 0.5 * total * (1 + np.tanh(0.7978845608 * (total + 0.044715 * total * total * total)))
    return result


@lru_cache(maxsize=1)
def _load() -> tuple[dict[str, Floats], dict[str, int]]:
    return parse(load(files("text2grad.align").joinpath("weights/stance_net.safetensors").read_bytes()))


def parse(data: Mapping[str, NDArray[Any]]) -> tuple[dict[str, Floats], dict[str, int]]:
    """Return the weights, and the numbers of the features of context, from arrays as they are stored."""
    names = data["names"].tobytes().decode().split("\n")
    weights = {name: array.astype(np.float32) for name, array in data.items() if name != "names"}
    return weights, {name: i for i, name in enumerate(names)}
