"""Requests and responses of the studio."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from text2grad.schema import Example, Feedback, Message, Omission, Severity, Span, Strict
from text2grad.studio.store import Annotation, Status
from text2grad.studio.workspace import SourceFile

MAX_TEXT = 20_000


def _printable_name(name: str) -> str:
    if not name.isprintable():
        raise ValueError("a name has printable characters only")
    return name


Annotator = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=40),
    AfterValidator(_printable_name),
]
Text = Annotated[str, Field(max_length=MAX_TEXT)]


class Token(Strict):
    """The token that the studio printed."""

    token: Annotated[str, Field(max_length=200)]


class MarkedSpan(Strict):
    """A marked part of the answer. quote: the selected words, which have to be those of the answer."""

    start: Annotated[int, Field(ge=0)]
    end: int
    quote: Text
    label: Annotated[str, Field(pattern="^(good|poor)$")]
    severity: Severity = 1.0
    reason: Text | None = None
    replacement: Text | None = None
    phrase: tuple[int, int] | None = None
    match: str = "offset"

    def to_span(self) -> Span:
        """Return the span; its words were confirmed by a person, so it is certain."""
        return Span.model_validate(self.model_dump(exclude={"quote"}))


class SaveRequest(Strict):
    """A new version of an annotation. version: the one that it is based on."""

    annotator: Annotator
    version: Annotated[int, Field(ge=0)]
    status: Status
    critique: Text = ""
    spans: Annotated[list[MarkedSpan], Field(max_length=500, default_factory=list)]
    omissions: Annotated[list[Omission], Field(max_length=100, default_factory=list)]


class UndoRequest(Strict):
    """Go back to the revision before `version`."""

    annotator: Annotator
    version: Annotated[int, Field(ge=1)]


class CommentRequest(Strict):
    """A critique to read."""

    annotator: Annotator
    critique: Annotated[str, Field(max_length=4000)]


class AnnotatorRequest(Strict):
    """Whose feedback is meant."""

    annotator: Annotator


class RecordResponse(Strict):
    """An answer with all that is said about it.

    source: a text that belongs to the prompt but is not in it. suggested: feedback of critics. siblings: other answers
    to the prompt.
    """

    index: int
    id: str
    prompt: str | list[Message]
    source: str | None
    completion: str
    reference: str | list[str] | None
    is_code: bool
    annotation: Annotation
    suggested: list[Feedback]
    siblings: list[int]
    others: list[str]


class SessionResponse(Strict):
    """What the studio offers."""

    ok: bool
    folder: str = ""
    files: list[SourceFile] = Field(default_factory=list)
    critic: str | None = None
    model: str | None = None


def source_text(example: Example) -> str | None:
    """Return the document that an answer is about, where it is not part of the prompt."""
    for name in ("document", "source", "article", "context"):
        text = example.meta.get(name)
        if isinstance(text, str) and text.strip() and text.strip() not in example.prompt_text:
            return text
    return None
