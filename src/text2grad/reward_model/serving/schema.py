"""What goes over the wire to and from the reward server, and how a mistake in it is put into words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag, model_validator

from text2grad.schema import Example, Feedback, Message, Strict
from text2grad.settings import did_you_mean

_TEXT, _MESSAGES = "(text)", "(messages)"
_WRONG = {
    "missing": "is missing",
    "model_attributes_type": "is not an object",
    "list_type": "is not a list",
    "string_type": "is not a string",
    "too_short": "is empty",
}
_SHOWN = 60  # characters of what somebody sent that an error repeats


class Submitted(Strict):
    """A base that names the first unknown field and stops there: a thousand of them must not cost a thousand errors."""

    @model_validator(mode="before")
    @classmethod
    def _known_fields(cls, data: Any) -> Any:
        if isinstance(data, dict):
            unknown = next((name for name in data if name not in cls.model_fields), None)
            if unknown is not None:
                shown = unknown[:_SHOWN]
                raise ValueError(f'unknown field "{shown}"{did_you_mean(shown, cls.model_fields)}')
        return data


class Turn(Message, Submitted):
    """One message of a conversation."""


def _kind(prompt: Any) -> str | None:
    if isinstance(prompt, str):
        return _TEXT
    return _MESSAGES if isinstance(prompt, list) else None


Prompt = Annotated[
    Annotated[str, Tag(_TEXT)] | Annotated[list[Turn], Field(min_length=1, fail_fast=True), Tag(_MESSAGES)],
    Discriminator(
        _kind,
        custom_error_type="prompt_kind",
        custom_error_message="give a string or a list of messages with role and content",
    ),
]


class Submission(Submitted):
    """An answer to judge, and what it answers. `id` only serves the server's log."""

    prompt: Prompt
    completion: str
    id: str | None = None


class ScoreRequest(Submitted):
    """Answers to judge."""

    examples: Annotated[list[Submission], Field(min_length=1, fail_fast=True)]

    def as_examples(self) -> list[Example]:
        return [
            Example(id=str(i) if sent.id is None else sent.id, prompt=sent.prompt, completion=sent.completion)
            for i, sent in enumerate(self.examples)
        ]


class ScoreResponse(Strict):
    """One feedback an example, in order."""

    feedback: list[Feedback]


class Health(Strict):
    """Whether the server takes requests, and how many examples wait for the model."""

    model: str
    ready: bool
    waiting: int


class Problem(Strict):
    """Why there is no answer, in one sentence."""

    detail: str


def sentence(errors: Sequence[Mapping[str, Any]]) -> str:
    """The first of pydantic's errors: the field, what is wrong, and what to do."""
    first = errors[0]
    field = _field(first["loc"][1:]) or "the body"  # every place begins with "body"
    if first["type"] in _WRONG:
        return f"{field} {_WRONG[first['type']]}; /docs shows what a request holds"
    return f"{field}: {first['msg'].removeprefix('Value error, ')}"


def _field(places: Sequence[int | str]) -> str:
    """`examples[0].prompt[1].role`, without the names of the prompt's two kinds."""
    parts = [f"[{part}]" if isinstance(part, int) else part for part in places if part not in (_TEXT, _MESSAGES)]
    return ".".join(parts).replace(".[", "[")
