"""The JSON reply of an LLM critic: its schema, a tolerant parser, and its conversion to Feedback."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import json_repair

from text2grad.align.quotes.quotes import locate_quote, locate_quotes
from text2grad.schema import Example, Feedback, Label, Omission, Range, Span

SEVERITIES = {"minor": 0.3, "moderate": 0.6, "major": 1.0}
_LABELS: dict[str, Label] = {
    **dict.fromkeys(("good", "positive", "praise", "correct"), "good"),
    **dict.fromkeys(("poor", "bad", "negative", "blame", "wrong", "incorrect", "error"), "poor"),
}
_THINK_START = re.compile(r"<think(?:ing)?>", re.IGNORECASE)
_THINK_END = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_CRITIQUE = re.compile(r"""(?<!\\)["']critique["']\s*:\s*(["'])((?:\\.|(?!\1)[^\\]){0,200})""")
# Appended to a reply before it is repaired: values that contain it were not finished. A letter, so that it also turns a
# truncated number into text.
_END_MARK = "\ua66e"


def _record(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


_TEXT = {"type": "string"}
_SEVERITY = {"type": "string", "enum": list(SEVERITIES)}

# The order is the method: reason first, then the critique, then the quote that each phrase of the critique is about.
SCHEMA = _record(
    reasoning=_TEXT,
    critique=_TEXT,
    spans={
        "type": "array",
        "items": _record(
            quote=_TEXT,
            phrase=_TEXT,
            label={"type": "string", "enum": ["good", "poor"]},
            severity=_SEVERITY,
            instead={"type": ["string", "null"]},
        ),
    },
    omissions={"type": "array", "items": _record(text=_TEXT, phrase=_TEXT, severity=_SEVERITY)},
)


class UnreadableReplyError(ValueError):
    """The reply has no finished critique."""


@dataclass(frozen=True)
class QuotedSpan:
    """A quote from the completion, and the phrase of the critique that is about it.

    `instead` is what should stand in its place, "" nothing at all; None if the reply does not say.
    """

    quote: str
    phrase: str | None
    label: Label
    severity: float = 1.0
    instead: str | None = None


@dataclass(frozen=True)
class QuotedOmission:
    """What the completion should have said, and the phrase of the critique that says so."""

    text: str
    phrase: str | None = None
    severity: float = 1.0


@dataclass(frozen=True)
class Reply:
    """A parsed reply; `unlabeled` holds quotes without a known label."""

    critique: str
    reasoning: str | None = None
    spans: list[QuotedSpan] = field(default_factory=list)
    omissions: list[QuotedOmission] = field(default_factory=list)
    unlabeled: list[str] = field(default_factory=list)


def reply_to_feedback(raw: str, example: Example, critic: str, threshold: float = 0.75) -> Feedback:
    """Return feedback with the quotes of a reply located in the completion.

    A range that is quoted twice with the same label counts once, with the first phrase. The feedback is failed, with
    the raw reply kept, if the reply is unreadable or none of its quotes is in the completion.
    """
    try:
        reply = parse_reply(raw)
    except UnreadableReplyError as error:
        return Feedback.failure(critic, f"unreadable: {error}", raw)
    matches = locate_quotes(
        [span.quote for span in reply.spans],
        example.completion,
        contexts=[span.phrase for span in reply.spans],
        threshold=threshold,
    )
    spans: dict[tuple[int, int, str], Span] = {}
    unmatched = list(reply.unlabeled)
    for quoted, match in zip(reply.spans, matches, strict=True):
        if match is None:
            unmatched.append(quoted.quote)
            continue
        span = Span(
            start=match.start,
            end=match.end,
            label=quoted.label,
            severity=quoted.severity,
            phrase=_phrase_range(quoted.phrase, reply),
            match=match.kind,
            confidence=match.confidence,
            replacement=_replacement(quoted, example.completion[match.start : match.end]),
        )
        spans.setdefault((span.start, span.end, span.label), span)
    omissions = [
        Omission(text=omission.text, severity=omission.severity, phrase=_phrase_range(omission.phrase, reply))
        for omission in reply.omissions
    ]
    return Feedback(
        reasoning=reply.reasoning,
        critique=reply.critique,
        spans=list(spans.values()),
        omissions=omissions,
        unmatched=unmatched,
        critic=critic,
        raw=raw,
        **_failure(reply, unmatched) if unmatched and not spans else {},
    )


def parse_reply(raw: str) -> Reply:
    """Parse JSON as language models write it: in prose, in a fence, wrongly quoted or truncated.

    Values that are not finished are dropped; raises UnreadableReplyError if the critique is among them, and if there
    are several critiques: one may be the answer's own, which the model has quoted.
    """
    error = "the reply has no JSON object"
    for value in parse_objects(without_thinking(raw), _has_several_critiques):
        if critique := clean_text(value.get("critique")):
            return _build_reply(critique, value)
        error = "the reply has no finished critique"
    raise UnreadableReplyError(error)


def replace_surrogates(text: str) -> str:
    """Join surrogate pairs and replace lone surrogates, which JSON escapes can contain and files cannot."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def without_thinking(raw: str) -> str:
    """Return what follows the last thought, whose start tag the chat template may have kept; drop an unfinished one.

    A reply that is valid JSON is returned as it is: it may quote such tags.
    """
    try:
        json.loads(raw)
    except (ValueError, RecursionError):
        text = raw[max((match.end() for match in _THINK_END.finditer(raw)), default=0) :]
        start = _THINK_START.search(text)
        return text[: start.start()] if start else text
    return raw


def parse_objects(text: str, is_ambiguous: Callable[[str], bool]) -> list[dict[str, Any]]:
    """Return the object from the first to the last brace if it is valid JSON, else those that json_repair finds.

    Which of several objects json_repair keeps is not to be relied on: raises UnreadableReplyError if the text
    `is_ambiguous`.
    """
    start, end = text.find("{"), text.rfind("}") + 1
    if start < 0:
        return []
    try:
        return [json.loads(text[start:end], strict=False)]
    except (ValueError, RecursionError):  # also for numbers with thousands of digits
        pass
    if is_ambiguous(text):
        raise UnreadableReplyError("the reply has several critiques")
    try:
        repaired = _finished(json_repair.loads(text[start:] + _END_MARK, skip_json_loads=True))
    except (ValueError, RecursionError):
        return []
    values = repaired if isinstance(repaired, list) else [repaired]
    return [value for value in values if isinstance(value, dict)]


def _has_several_critiques(text: str) -> bool:
    return len(set(_CRITIQUE.findall(text))) > 1


def _finished(value: Any) -> Any:
    """Replace strings that contain the end mark by None, in a parsed value."""
    if isinstance(value, dict):
        return {key: _finished(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finished(item) for item in value]
    return None if isinstance(value, str) and _END_MARK in value else value


def _build_reply(critique: str, value: dict[str, Any]) -> Reply:
    reply = Reply(critique, clean_text(value.get("reasoning")))
    for entry in list_entries(value.get("spans"), "quote"):
        quote, label = clean_quote(entry.get("quote")), _LABELS.get(str(entry.get("label")).strip().lower())
        if quote and label:
            phrase, severity = clean_text(entry.get("phrase")), _severity(entry.get("severity"))
            reply.spans.append(QuotedSpan(quote, phrase, label, severity, clean_instead(entry.get("instead"))))
        elif quote:
            reply.unlabeled.append(quote)
    for entry in list_entries(value.get("omissions"), "text"):
        if text := clean_text(entry.get("text")):
            omission = QuotedOmission(text, clean_text(entry.get("phrase")), _severity(entry.get("severity")))
            reply.omissions.append(omission)
    return reply


def list_entries(items: Any, key: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of a list; a plain value stands for an object with this key only."""
    for item in items if isinstance(items, list) else ():
        yield item if isinstance(item, dict) else {key: item}


def clean_text(value: Any) -> str | None:
    """Return a string with a letter or a digit: an ellipsis copied from the instructions is not text."""
    return clean_quote(value) if isinstance(value, str) and any(map(str.isalnum, value)) else None


def clean_quote(value: Any) -> str | None:
    """Return a stripped string; a quote may consist of operators or punctuation."""
    return replace_surrogates(value.strip()) or None if isinstance(value, str) else None


def clean_instead(value: Any) -> str | None:
    """Return the words of a suggestion, "" if the quote should go; None for anything else and for an ellipsis."""
    if not isinstance(value, str) or (value.strip() and value.strip(".… ") == ""):
        return None
    return replace_surrogates(value.strip())


def _replacement(quoted: QuotedSpan, found: str) -> str | None:
    """Return what should replace the words found; None for praise, and where it would change nothing."""
    return quoted.instead if quoted.label == "poor" and quoted.instead != found.strip() else None


def _severity(value: Any) -> float:
    """Return the severity of a word of the scale or of a number in (0, 1]; for anything else the default, 1."""
    if isinstance(value, str):
        return SEVERITIES.get(value.strip().lower(), 1.0)
    is_fraction = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1
    return float(value) if is_fraction else 1.0


def _phrase_range(phrase: str | None, reply: Reply) -> Range | None:
    """Locate a phrase in the critique; the span is kept without one."""
    match = locate_quote(phrase, reply.critique) if phrase else None
    return (match.start, match.end) if match else None


def _failure(reply: Reply, unmatched: list[str]) -> dict[str, Any]:
    cause = "unmatched: none of the {} quotes is in the completion"
    if not reply.spans:
        cause = "unreadable: none of the {} quotes has a known label"
    return {"status": "failed", "error": cause.format(len(unmatched))}
