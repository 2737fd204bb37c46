"""The score of an answer to a question: correct, to the point, supported. Formula and constants in one place.

score = 2 * supported * hedged * (ATTEMPT * attempt * exp(-excess / ATTEMPT_SCALE)
                                  + (1 - ATTEMPT) * correct * exp(-excess / CORRECT_SCALE)) - 1, from -1 to 1

attempt    1 for an answer of the kind that is asked for, a part of it for another one, 0 for none: silence, a refusal,
           the question repeated.
correct    the share of the gold answer that is given; of a long one the share of its facts, times that of its words.
excess     words that a short answer does not need: neither of the gold answer nor of the question.
hedged     HEDGED to the power of the other answers that are offered beside the first: one choice is better than two.
supported  exp(-faults / FAULTS_SCALE), faults being the severities of all unsupported or broken parts.

Nothing makes up for anything else: a wrong answer has at most -0.7, and a correct one that is buried among every other
candidate, or in the whole passage, is worth no more than that.
"""

from __future__ import annotations

import math
from typing import NamedTuple

ATTEMPT = 0.15
ATTEMPT_SCALE, CORRECT_SCALE = 45.0, 25.0  # words; a wrong answer is hardly worse for being long
FAULTS_SCALE = 4.0
HEDGED = 0.35


class Qualities(NamedTuple):
    """What the score is made of. attempt, correct: 0 to 1. excess: words. hedges: other answers. faults: severities."""

    attempt: float
    correct: float
    excess: float
    hedges: int
    faults: float


def answer_score(qualities: Qualities) -> float:
    """Return the score, from -1 to 1."""
    attempt = ATTEMPT * qualities.attempt * math.exp(-qualities.excess / ATTEMPT_SCALE)
    correct = (1 - ATTEMPT) * qualities.correct * math.exp(-qualities.excess / CORRECT_SCALE)
    supported = math.exp(-qualities.faults / FAULTS_SCALE)
    return round(2 * supported * HEDGED**qualities.hedges * (attempt + correct) - 1, 6)
