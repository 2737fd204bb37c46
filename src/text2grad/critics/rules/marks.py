"""From findings about ranges of words to marks on characters that never overlap and never cover most of a text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from text2grad.schema import Label
from text2grad.text.words import Text, consecutive_runs

Kind = Literal[
    "told",
    "number",
    "name",
    "word",
    "filler",
    "copied",
    "repeated",
    "listed",
    "broken",
    "padding",
    "layout",
    "unfinished",
]


class Finding(NamedTuple):
    """What a rule found in a range of words; its mark covers at most `reach` of them."""

    kind: Kind
    words: range
    severity: float
    reach: int


class Mark(NamedTuple):
    """Characters `start` to `end` of a summary: praise if `kind` is "told", blame otherwise."""

    kind: Kind
    start: int
    end: int
    severity: float

    @property
    def label(self) -> Label:
        return "good" if self.kind == "told" else "poor"


def place(findings: Iterable[Finding], text: Text) -> list[Mark]:
    """Give each word to the first finding that claims it.

    A finding is marked at its longest run of words that are still free, cut to its reach; without any, it is dropped.
    """
    free = [True] * len(text.words)
    marks = []
    for finding in findings:
        run = max(consecutive_runs(i for i in finding.words if free[i]), key=len, default=range(0))[: finding.reach]
        if run:
            for i in run:
                free[i] = False
            severity = round(min(1.0, finding.severity), 2)
            marks.append(Mark(finding.kind, text.words[run[0]].start, text.words[run[-1]].end, severity))
    return marks


def gravest(marks: Iterable[Mark], budget: int) -> list[Mark]:
    """The gravest marks that fit into a budget of characters, in reading order.

    Labelling most of a text says nothing about where it went wrong, so a bad one is marked at its worst places.
    """
    chosen = []
    for mark in sorted(marks, key=lambda mark: (-mark.severity, mark.start)):
        if mark.end - mark.start <= budget:
            budget -= mark.end - mark.start
            chosen.append(mark)
    return sorted(chosen, key=lambda mark: mark.start)
