"""Marks on a summary: what one rule finds, where, and how grave it is; and how marks share the text without overlap."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from text2grad.critics.words import Text

Kind = Literal[
    "told", "number", "name", "word", "copied", "repeated", "listed", "broken", "filler", "padding", "layout", "unfinished"
]


@dataclass(frozen=True, slots=True)
class Mark:
    """Characters `start` to `end` of the summary; praise if `kind` is "told", blame otherwise."""

    kind: Kind
    start: int
    end: int
    severity: float

    @property
    def label(self) -> Literal["good", "poor"]:
        return "good" if self.kind == "told" else "poor"


def mark(kind: Kind, text: Text, words: range, severity: float) -> Mark:
    """A mark from the first to the last of `words`."""
    return Mark(kind, text.words[words.start].start, text.words[words.stop - 1].end, min(1.0, severity))


def without_overlap(marks: Iterable[Mark], text: Text) -> list[Mark]:
    """Give each word to the first mark that claims it; a later mark keeps its longest run of free words, or goes."""
    free = [True] * len(text.words)
    kept = []
    for candidate in marks:
        words = [i for i, word in enumerate(text.words) if candidate.start <= word.start and word.end <= candidate.end]
        if not words:  # stands between words, where nothing competes
            kept.append(candidate)
            continue
        run = _longest_run([i for i in words if free[i]])
        if run:
            kept.append(replace(candidate, start=text.words[run[0]].start, end=text.words[run[-1]].end))
            for i in run:
                free[i] = False
    return kept


def _longest_run(indices: list[int]) -> list[int]:
    best: list[int] = []
    run: list[int] = []
    for i in indices:
        run = [*run, i] if run and i == run[-1] + 1 else [i]
        best = max(best, run, key=len)
    return best


def gravest(marks: Iterable[Mark], budget: int) -> list[Mark]:
    """The gravest marks that fit into a budget of characters, in reading order.

    Labelling most of a text teaches nothing about where it went wrong, so a bad one is blamed for its worst parts.
    """
    chosen = []
    for candidate in sorted(marks, key=lambda m: (-m.severity, m.start)):
        length = candidate.end - candidate.start
        if length <= budget:
            chosen.append(candidate)
            budget -= length
    return sorted(chosen, key=lambda m: m.start)
