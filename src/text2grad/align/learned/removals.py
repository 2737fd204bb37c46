"""Which words of an answer a request to remove something means: "remove Koeman's first name".

People describe what should go more often than they quote it. Every run of words of the answer is a candidate, if the
rest still reads without it (`cuts.still_reads`). A log-linear model chooses among the candidates and "none of them":
features say how the run's words compare with the request's, whether the source has them, which kind of phrase the
request speaks of (a name, an age, a place, ...) and which kind the run is, and how the run begins and ends. The weights
were trained on the requests and corrections of people (`benchmarks/train_removals.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from text2grad.align.answer.cuts import count_marks, may_end_cut, still_reads
from text2grad.align.learned.phrase_kinds import phrase_kinds
from text2grad.align.learned.removal_features import Column, Described, describe_candidates
from text2grad.align.learned.removal_requests import kind_keys, parse_request
from text2grad.align.weight_files import load_weights
from text2grad.text.whitespace import WhitespaceWord, split_words

_MAX_WORDS = 16
_MAX_ANSWER = 120  # words; of a longer answer, only sentences that have a word of the request


class Removal(NamedTuple):
    """The words [first, last) of the answer, and the probability that the request means exactly them."""

    first: int
    last: int
    probability: float


def find_removals(request: str, answer: str, source: str | None = None) -> list[Removal]:
    """Return the candidates, best first; their probabilities and that of "none" add up to 1."""
    words = split_words(answer)
    candidates = list_candidates(request, words)
    if not candidates:
        return []
    scores = score(describe_candidates(request, words, candidates, source))
    shares = np.exp(scores - max(0.0, scores.max()))
    shares /= math.exp(-max(0.0, scores.max())) + shares.sum()
    found = [Removal(*run, share) for run, share in zip(candidates, shares.tolist(), strict=True)]
    return sorted(found, key=lambda removal: -removal.probability)


def list_candidates(request: str, words: Sequence[WhitespaceWord]) -> list[tuple[int, int]]:
    """Return the runs of words that the request may mean and without which the answer still reads.

    There are none if no word of the request is known. What is asked for as a first name or an age has to be one.
    """
    asked = parse_request(request)
    named = (asked.head - kind_keys()) & {key for word in words if word.is_content for key in word.keys}
    if not named and not asked.kinds:
        return []
    if len(words) > _MAX_ANSWER and not named:
        return []
    near = {word.sentence for word in words if not named or named.intersection(word.keys)}
    needed = {kind for kind in ("first name", "age") if kind in asked.kinds} if not named else set()
    is_long = len(words) > _MAX_ANSWER
    marks = count_marks(words)
    may_end = [True, *(may_end_cut(words, last) for last in range(1, len(words) + 1))]
    found = []
    for first, word in enumerate(words):
        if is_long and word.sentence not in near:
            continue
        for last in range(first + 1, min(len(words), first + _MAX_WORDS) + 1):
            if words[last - 1].sentence != word.sentence:
                break
            if may_end[last] and still_reads(words, first, last, marks):
                found.append((first, last))
    if needed:
        kinds = phrase_kinds(words, found)
        return [run for run, own in zip(found, kinds, strict=True) if needed & own]
    return found


def score(described: Described) -> Column:
    """Return the log-odds of each candidate against "none", up to a constant."""
    weights = _weights()
    total = np.zeros(len(described.columns["bias"]))
    for groups, chosen in described.choices:
        total += np.array(list(map(_sum_weights, groups)))[chosen]
    for name, column in described.columns.items():
        if name in weights:
            total += weights[name] * column
    return total


@lru_cache(maxsize=1 << 14)
def _sum_weights(names: tuple[str, ...]) -> float:
    weights = _weights()
    return sum(weights.get(name, 0.0) for name in names)


@lru_cache(maxsize=1)
def _weights() -> dict[str, float]:
    weights: dict[str, float] = load_weights("text2grad.align.learned", "removals")
    return weights
