"""What is right and wrong with an answer?"""

from collections.abc import Sequence
from typing import Protocol

from text2grad.schema import Example, Feedback


class Critic(Protocol):
    """Anything that comments on answers: a person, a linter, a test run, a model.

    It returns one Feedback for each example, in order. What it cannot judge it returns as `Feedback.failure(...)`,
    never as an exception that would take the neighbours along.
    """

    def critique(self, examples: Sequence[Example]) -> list[Feedback]: ...
