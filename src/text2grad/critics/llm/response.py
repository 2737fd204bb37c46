"""The body of a chat completion, read with suspicion."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, Field, NonNegativeInt, ValidationError, ValidatorFunctionWrapHandler, WrapValidator


class UnansweredError(Exception):
    """This question has no answer; the message begins with a cause that can be counted."""

    def __init__(self, why: str, raw: str | None = None) -> None:
        super().__init__(why)
        self.raw = raw


class GarbageError(ValueError):
    """The body is no chat completion."""


class Usage(BaseModel):
    """Tokens as the server counts them."""

    prompt_tokens: NonNegativeInt
    completion_tokens: NonNegativeInt


@dataclass(frozen=True)
class Completion:
    """What the model wrote, why it stopped, and what the server counted, where it counts."""

    content: str
    finish_reason: str | None
    refusal: str | None
    usage: Usage | None

    @property
    def cut(self) -> bool:
        """Cut off at the token limit."""
        return self.finish_reason == "length"

    def require_content(self) -> None:
        """Raise UnansweredError if the model did not answer."""
        if self.refusal:
            raise UnansweredError("refused: the model declined to answer", self.refusal)
        if self.finish_reason == "content_filter":
            raise UnansweredError("refused: the server's content filter", self.content)
        if not self.content.strip():
            raise UnansweredError("empty: the model wrote nothing", self.content)


class _Choice(BaseModel):
    # Any: a lone surrogate in the text is no reason to throw the answer away.
    message: dict[str, Any]
    finish_reason: str | None = None


def _none_if_invalid(given: Any, read: ValidatorFunctionWrapHandler) -> Any:
    """A server that counts badly has answered all the same."""
    try:
        return read(given)
    except ValidationError:
        return None


class _Body(BaseModel):
    choices: Annotated[list[_Choice], Field(min_length=1)]
    usage: Annotated[Usage | None, WrapValidator(_none_if_invalid)] = None


def read_completion(text: str, clean: Callable[[str], str]) -> Completion:
    """The first choice of a chat completion, its texts cleaned; GarbageError if the text is none."""
    try:
        body = _Body.model_validate(json.loads(text))
    except (ValueError, RecursionError) as error:  # of numbers with thousands of digits, too
        raise GarbageError(str(error)) from error
    choice = body.choices[0]
    content, refusal = choice.message.get("content"), choice.message.get("refusal")
    return Completion(
        content=clean(content) if isinstance(content, str) else "",
        finish_reason=choice.finish_reason,
        refusal=clean(refusal) if isinstance(refusal, str) else None,
        usage=body.usage,
    )
