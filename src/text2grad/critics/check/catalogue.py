"""The catalogue of degenerate answers.

A policy finds whatever the critic rewards. No answer of these kinds deserves more than an honest attempt.
"""

from __future__ import annotations

from typing import NamedTuple

from text2grad.critics.check.code_kinds import CODE_KINDS
from text2grad.critics.check.kinds import Kind, Task
from text2grad.critics.check.text_kinds import TEXT_KINDS
from text2grad.schema import Example

CATALOGUE: tuple[Kind, ...] = (*TEXT_KINDS, *CODE_KINDS)


class DegenerateAnswer(NamedTuple):
    """A degenerate answer: the example with the answer as its completion."""

    kind: Kind
    example: Example


def degenerate_answers(example: Example, honest: str | None = None) -> list[DegenerateAnswer]:
    """Return the answers of every kind that makes sense for the example; `feedback` is removed.

    honest: an honest attempt, which some kinds pad, repeat or otherwise spoil; they are left out without one.
    """
    task = Task(example, honest)
    return [
        DegenerateAnswer(kind, example.model_copy(update={"completion": answer, "feedback": None}))
        for kind in CATALOGUE
        for answer in dict.fromkeys(kind.make(task))
    ]
