"""Requests and responses of the reward server, and its error messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from text2grad.schema import Example, Feedback, Message, Strict, field_path

_MAX_ERROR_CHARS = 300


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


class Problem(Strict):
    """The reason of an error in one sentence."""

    detail: str


def describe_errors(errors: Sequence[Mapping[str, Any]]) -> str:
    """Return one of pydantic's errors as `field: reason`; of the two variants of a prompt, the one that got further."""
    error = max(errors, key=lambda error: len(error["loc"]))
    parts = [part for part in error["loc"] if part != "str" and not str(part).startswith("list[")]
    message = f"{field_path(parts).removeprefix('body.')}: {error['msg'].removeprefix('Value error, ')}"
    return message[:_MAX_ERROR_CHARS].encode(errors="replace").decode()
