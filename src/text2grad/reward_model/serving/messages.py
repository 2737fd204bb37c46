"""Requests and responses of the reward server."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from text2grad.schema import Example, Feedback, Message, Strict


class ScoreExample(Strict):
    """A completion to score. `id` appears in the server's log only."""

    prompt: str | Annotated[list[Message], Field(min_length=1, fail_fast=True)]
    completion: str
    id: str | None = None


class ScoreRequest(Strict):
    """Completions to score."""

    examples: Annotated[list[ScoreExample], Field(min_length=1, fail_fast=True)]

    def to_examples(self) -> list[Example]:
        """Return the examples; one without an id gets its position."""
        return [
            Example(id=str(i) if one.id is None else one.id, prompt=one.prompt, completion=one.completion)
            for i, one in enumerate(self.examples)
        ]


class ScoreResponse(Strict):
    """One feedback per example, in order."""

    feedback: list[Feedback]


class Health(Strict):
    """The name of the model, and the number of examples waiting for it."""

    model: str
    queue_size: int
