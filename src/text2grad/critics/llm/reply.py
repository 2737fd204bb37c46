"""What an LLM critic is asked to reply, and how its reply is read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from text2grad.critics.llm.lenient import NotJsonError, read_object
from text2grad.schema import Label

SEVERITIES = {"minor": 0.3, "moderate": 0.6, "major": 1.0}
_LABELS: dict[str, Label] = {
    **dict.fromkeys(("good", "positive", "praise", "correct"), "good"),
    **dict.fromkeys(("poor", "bad", "negative", "blame", "wrong", "incorrect", "error"), "poor"),
}
_THOUGHT_BEGINS = re.compile(r"<think(?:ing)?>", re.IGNORECASE)
_THOUGHT_ENDS = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_MOST_BRACES_TRIED = 50


def _record(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


_TEXT = {"type": "string"}
_SEVERITY = {"type": "string", "enum": list(SEVERITIES)}

# The order is the method: reason first, then the critique, then what in the answer each phrase of it is about.
SCHEMA = _record(
    reasoning=_TEXT,
    critique=_TEXT,
    spans={
        "type": "array",
        "items": _record(
            quote=_TEXT, phrase=_TEXT, label={"type": "string", "enum": ["good", "poor"]}, severity=_SEVERITY
        ),
    },
    omissions={"type": "array", "items": _record(text=_TEXT, phrase=_TEXT, severity=_SEVERITY)},
)


@dataclass(frozen=True)
class Quoted:
    """A part of the answer, in the critic's quotation, and the phrase of the critique that is about it."""

    quote: str
    phrase: str | None
    label: Label
    severity: float = 1.0


@dataclass(frozen=True)
class Missing:
    """What the answer should have said."""

    text: str
    phrase: str | None = None
    severity: float = 1.0


@dataclass(frozen=True)
class Reply:
    """A reply as it was read; `unread` holds quotations that came without a readable label."""

    critique: str
    reasoning: str | None = None
    spans: list[Quoted] = field(default_factory=list)
    omissions: list[Missing] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


class UnreadableError(ValueError):
    """The reply holds no critique that can be read without guessing; the message says why."""


def read_reply(raw: str) -> Reply:
    """Read a reply that may be fenced, followed by prose, single-quoted or cut off; raises UnreadableError.

    What is not finished is left out; the critique itself must be finished.
    """
    problem = "there is no JSON object in the reply"
    for value in _objects(_without_thoughts(raw)):
        if isinstance(value, NotJsonError):
            problem = f"the reply is not JSON: {value}"
        elif not _text(value.get("critique")):
            problem = "the reply has no finished critique"
        else:
            return _reply(value)
    raise UnreadableError(problem)


def _without_thoughts(raw: str) -> str:
    """What comes after the last thought, whose beginning the chat template may have kept; an unfinished one is cut.

    A reply that is JSON as a whole is nothing but that: it may speak of such marks.
    """
    try:
        json.loads(raw)
    except (ValueError, RecursionError):
        ends = [match.end() for match in _THOUGHT_ENDS.finditer(raw)]
        text = raw[ends[-1] :] if ends else raw
        begins = _THOUGHT_BEGINS.search(text)
        return text[: begins.start()] if begins else text
    return raw


def _objects(text: str) -> Iterator[dict[str, Any] | NotJsonError]:
    """The objects that stand in the text, outermost first, read strictly where that is possible."""
    decoder = json.JSONDecoder(strict=False)
    at, tried = text.find("{"), 0
    while at >= 0 and tried < _MOST_BRACES_TRIED:
        tried += 1
        end = at + 1
        try:
            value, end = decoder.raw_decode(text, at)
            yield value
        except (ValueError, RecursionError):  # of numbers with thousands of digits, too
            try:
                read = read_object(text, at)
                end = read.end
                yield read.value
            except NotJsonError as error:
                yield error
        at = text.find("{", end)


def _reply(value: dict[str, Any]) -> Reply:
    spans: list[Quoted] = []
    unread: list[str] = []
    for item in _list(value.get("spans")):
        entry = item if isinstance(item, dict) else {"quote": item}
        quote, label = _quote(entry.get("quote")), _LABELS.get(str(entry.get("label")).strip().lower())
        if quote and label:
            spans.append(Quoted(quote, _text(entry.get("phrase")), label, _severity(entry.get("severity"))))
        elif quote:
            unread.append(quote)
    omissions = []
    for item in _list(value.get("omissions")):
        entry = item if isinstance(item, dict) else {"text": item}
        if text := _text(entry.get("text")):
            omissions.append(Missing(text, _text(entry.get("phrase")), _severity(entry.get("severity"))))
    critique = _text(value["critique"])
    assert critique is not None
    return Reply(critique, _text(value.get("reasoning")), spans, omissions, unread)


def _text(value: Any) -> str | None:
    """A string with a letter or a digit in it: an ellipsis copied from the instructions says nothing."""
    if not isinstance(value, str) or not any(letter.isalnum() for letter in value):
        return None
    return encodable(value.strip())


def _quote(value: Any) -> str | None:
    """A quotation may be nothing but operators or punctuation."""
    return encodable(value.strip()) or None if isinstance(value, str) else None


def encodable(text: str) -> str:
    """Without lone surrogates, which an escape in JSON can smuggle in and no file can hold."""
    return text.encode("utf-8", errors="replace").decode("utf-8")


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _severity(value: Any) -> float:
    """A word of the scale or a number in (0, 1]; anything else is the schema's default, 1."""
    if isinstance(value, str):
        return SEVERITIES.get(value.strip().lower(), 1.0)
    is_share = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1
    return float(value) if is_share else 1.0
