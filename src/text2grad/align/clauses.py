"""What a comment says: its clauses, each with its stance and with what it says is missing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from text2grad.align.clause_split import main_parts, mask_quotations, split_clauses, strip_range
from text2grad.align.missing import find_missing
from text2grad.align.stance_features import MASK
from text2grad.align.stance_model import StanceProbabilities, predict_stance
from text2grad.schema import Range

ClauseStance = Literal["good", "poor", "unsure"]

MIN_PROBABILITY = 0.6  # of a stance that is taken; below, the clause is "unsure"
_MIN_MISSING = 0.5  # probability that a clause says that something is missing
_EXCEPTION_CERTAINTY = 0.9  # that an exception means the opposite of what it is excepted from

_COURTESIES = (
    r"thanks?|thank you|thx|ty|cheers|please|hi|hello|hey|hiya|dear|all|team|everyone|there|again|a lot|so much"
    r"|very much|in advance|many|regards|kind|best|wishes|sincerely|greetings|good (?:morning|day|evening)|bye"
    r"|goodbye|see you|sorry|hm+|um+|well|so|and|but|overall|in general"
    r"|(?:(?:here|these) (?:is|are) )?my (?:comments?|feedback|thoughts|two cents|review)|some (?:comments|thoughts)"
    r"|comments?|feedback"
    r"|review|notes?|ps|hope (?:this|that|it) helps|hth|for (?:your|the) (?:help|time|work|effort|summary|answer|reply)"
    r"|first(?:ly)?(?: of all)?|secondly|finally"
)
_SAYS_NOTHING = re.compile(rf"(?:[^\w{MASK}]|_|\b(?:{_COURTESIES})\b)+", re.IGNORECASE)


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
    """Return the clauses of a comment in order, without those that say nothing of the answer ("Thanks!").

    A sentence is split where both sides of a contrast, a conjunction or a comma say something of their own, never
    inside quotations or brackets. What is excepted ("apart from the ending") has the opposite stance of the rest.
    """
    return read_masked(mask_quotations(comment))


def read_masked(masked: str) -> list[Clause]:
    """Return the clauses of a comment whose quotations are replaced by `MASK`, character by character."""

    @cache
    def judge(start: int, end: int, before: str, after: str) -> StanceProbabilities:
        return predict_stance(masked[start:end], before, after)

    clauses = []
    for piece, main in main_parts(split_clauses(masked, judge)):
        start, end = strip_range(masked, piece.start, piece.end)
        if start == end or _SAYS_NOTHING.fullmatch(masked, start, end):
            continue
        if main is None:
            found = judge(start, end, piece.before, piece.after)
            stance, probability = _decide(found)
            says_missing = stance == "poor" and found.missing >= _MIN_MISSING
        else:
            stance, probability = _except(*_decide(judge(main.start, main.end, main.before, main.after)))
            says_missing = False
        missing = find_missing(masked, start, end) if says_missing else None
        clauses.append(Clause(start, end, stance, probability, missing))
    return clauses


def read_stance(comment: str) -> tuple[ClauseStance, float]:
    """Return the stance of a comment as a whole, and its probability: that of its clauses, weighted by certainty."""
    return combine_stances(read_clauses(comment))


def combine_stances(clauses: Sequence[Clause]) -> tuple[ClauseStance, float]:
    """Return the stance that has most weight among clauses, by how far its probability is above even, and its share."""
    weights = {"good": 0.0, "poor": 0.0}
    for clause in clauses:
        if clause.stance != "unsure":
            weights[clause.stance] += clause.probability
    total = sum(weights.values())
    if not total:
        return "unsure", max((clause.probability for clause in clauses), default=1.0)
    stance: ClauseStance = "good" if weights["good"] > weights["poor"] else "poor"
    taken = [clause.probability for clause in clauses if clause.stance == stance]
    return stance, max(taken) * weights[stance] / total


def _decide(probabilities: StanceProbabilities) -> tuple[ClauseStance, float]:
    good, poor = probabilities.good, probabilities.poor
    if max(good, poor) < MIN_PROBABILITY:
        return "unsure", 1.0 - max(good, poor)
    return ("good", good) if good > poor else ("poor", poor)


def _except(stance: ClauseStance, probability: float) -> tuple[ClauseStance, float]:
    """Return the stance on what is excepted."""
    if stance == "unsure":
        return "unsure", probability
    return "poor" if stance == "good" else "good", probability * _EXCEPTION_CERTAINTY
