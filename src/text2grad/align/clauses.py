"""What a comment says: its clauses, each with its stance and with what it says is missing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from text2grad.align.quotations import find_quotations
from text2grad.schema import Range

ClauseStance = Literal["good", "poor", "unsure"]

_SENTENCE_END = re.compile(r"(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)(?<!\bcf\.)(?<=[.!?])\s+|[;\n]+")
_CONTRAST = re.compile(r",?\s+(?=(?:but|however|although|though|whereas|while|except)\b)", re.IGNORECASE)
_BLAME = re.compile(
    r"\b(?:wrong|not|\w+n['’]t|never|no|off|bad|weak|missing|should|forg[eo]ts?|fails?)\b", re.IGNORECASE
)
_MERIT = re.compile(r"\b(?:good|fine|great|nice|right|correct|clear|well|love|liked?|perfect)\b", re.IGNORECASE)
_MISSING = re.compile(
    r"\b(?:forg[eo]ts?|forgotten|omits?|omitted|misse[sd]|leaves? out|left out|no mention of|nothing about)"
    r"(?:\s+to\s+(?:mention|say|include|add))?\s+(?P<what>[^.,;!?]+)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Clause:
    """A part of a comment that says one thing of the answer.

    start, end: its range in the comment. stance: whether it praises, blames, or cannot be told; the probability that
    this is right is calibrated. missing: the words of the comment that name what the answer lacks, if the clause says
    that something is missing; whether it really is can only be told from the answer.
    """

    start: int
    end: int
    stance: ClauseStance
    probability: float
    missing: Range | None = None


def read_clauses(comment: str) -> list[Clause]:
    """Return the clauses of a comment in order, without those that say nothing of the answer ("Thanks!")."""
    quotations = find_quotations(comment)
    breaks = [
        match.span()
        for pattern in (_SENTENCE_END, _CONTRAST)
        for match in pattern.finditer(comment)
        if not any(start <= match.start() < end for start, end in quotations)
    ]
    starts = [0, *sorted(after for _, after in breaks)]
    ends = [*sorted(before for before, _ in breaks), len(comment)]
    return [_read_clause(comment, start, end) for start, end in zip(starts, ends, strict=True) if start < end]


def _read_clause(comment: str, start: int, end: int) -> Clause:
    missing = _MISSING.search(comment, start, end)
    stance: ClauseStance = "unsure"
    if missing or _BLAME.search(comment, start, end):
        stance = "poor"
    elif _MERIT.search(comment, start, end):
        stance = "good"
    return Clause(start, end, stance, 0.5 if stance == "unsure" else 0.8, missing.span("what") if missing else None)
