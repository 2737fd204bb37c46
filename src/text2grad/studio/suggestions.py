"""What a comment seems to be about, as suggestions that a person accepts or drops."""

from __future__ import annotations

from typing import Literal

from text2grad.align.reading import read_comment
from text2grad.schema import Example, Omission, Range, Span, Strict


class Suggestion(Strict):
    """A part of the comment as it was understood: words of the answer, or something that is missing."""

    kind: Literal["span", "omission"]
    span: Span | None = None
    omission: Omission | None = None
    confidence: float


class NotUnderstood(Strict):
    """A part of the comment without effect, and why."""

    phrase: Range
    text: str
    reason: str


class Suggestions(Strict):
    """All that was read in a comment. unmatched: quotations that are not in the answer."""

    suggestions: list[Suggestion]
    not_understood: list[NotUnderstood]
    unmatched: list[str]


def suggest(comment: str, example: Example, critic: str) -> Suggestions:
    """Read a comment on an answer."""
    reading = read_comment(comment, example.completion, example.prompt_text, critic=critic)
    found = [Suggestion(kind="span", span=span, confidence=span.confidence) for span in reading.spans]
    found += [Suggestion(kind="omission", omission=omission, confidence=1.0) for omission in reading.omissions]
    refused = [
        NotUnderstood(phrase=phrase, text=comment[slice(*phrase)].strip(), reason=reason)
        for phrase, reason in reading.refused
    ]
    return Suggestions(suggestions=found, not_understood=refused, unmatched=reading.unmatched)
