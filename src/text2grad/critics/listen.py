"""Asking the critic. What it returns is checked once, here; feedback that points outside its answer is a failure."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

from text2grad.critics import Critic
from text2grad.errors import UserError
from text2grad.schema import Example, Feedback, describe


def listen(critic: Critic, examples: Sequence[Example]) -> list[Feedback]:
    """One Feedback for each example."""
    feedback = critic.critique(examples)
    if len(feedback) != len(examples):
        name = type(critic).__name__
        raise UserError(f"{name} returned {len(feedback)} comments on {len(examples)} answers; it owes one for each")
    return [_checked(said, example) for said, example in zip(feedback, examples, strict=True)]


def _checked(feedback: Feedback, example: Example) -> Feedback:
    try:
        Example.model_validate({**example.model_dump(exclude={"feedback"}), "feedback": feedback})
    except ValidationError as error:
        return Feedback.failure(feedback.critic, describe(error), raw=feedback.raw)
    return feedback
