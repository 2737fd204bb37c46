"""What a language model says that a comment means: the schema of its reply, a parser, and spans of the answer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal, get_args

from text2grad.align.omissions import is_present
from text2grad.align.quotes.quotes import locate_quote, locate_quotes
from text2grad.align.reading import NO_PLACE, NOT_MISSING, NOT_SURE
from text2grad.critics.llm.reply import (
    UnreadableReplyError,
    clean_instead,
    clean_quote,
    clean_text,
    list_entries,
    parse_objects,
    without_thinking,
)
from text2grad.schema import Omission, Range, Span

Opinion = Literal["good", "poor", "unsure"]
_TEXT: dict[str, Any] = {"type": "string"}
_TEXT_OR_NULL: dict[str, Any] = {"type": ["string", "null"]}
_PART: dict[str, Any] = {
    "phrase": _TEXT,
    "opinion": {"type": "string", "enum": list(get_args(Opinion))},
    "quotes": {"type": "array", "items": _TEXT},
    "whole": {"type": "boolean"},
    "missing": _TEXT_OR_NULL,
    "instead": _TEXT_OR_NULL,
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "reasoning": _TEXT,
        "parts": {
            "type": "array",
            "items": {"type": "object", "properties": _PART, "required": list(_PART), "additionalProperties": False},
        },
    },
    "required": ["reasoning", "parts"],
    "additionalProperties": False,
}
_PARTS = re.compile(r"""(?<!\\)["']parts["']\s*:""")


@dataclass(frozen=True)
class Part:
    """One thing that a comment says. quotes: the words of the answer that it is about.

    missing: what the answer lacks. instead: what should stand in the place of the quote, "" nothing at all.
    """

    phrase: str | None
    opinion: Opinion
    quotes: tuple[str, ...] = ()
    is_whole: bool = False
    missing: str | None = None
    instead: str | None = None


def parse_parts(raw: str) -> list[Part]:
    """Parse a reply as language models write JSON; raises UnreadableReplyError if it has no list of parts, or several.

    One of several lists may be the answer's own, which the model has quoted.
    """
    text = without_thinking(raw)
    for value in parse_objects(text, lambda text: len(_PARTS.findall(text)) > 1):
        if isinstance(value.get("parts"), list):
            return [part for entry in list_entries(value["parts"], "phrase") if (part := _to_part(entry))]
    raise UnreadableReplyError("the reply has no list of parts")


def _to_part(entry: dict[str, Any]) -> Part | None:
    opinion = str(entry.get("opinion")).strip().lower()
    if opinion not in get_args(Opinion):
        return None
    quotes = entry.get("quotes")
    found = [clean_quote(quote) for quote in (quotes if isinstance(quotes, list) else [quotes])]
    return Part(
        phrase=clean_text(entry.get("phrase")),
        opinion=opinion,  # type: ignore[arg-type]  # one of them
        quotes=tuple(quote for quote in found if quote),
        is_whole=entry.get("whole") is True,
        missing=clean_text(entry.get("missing")),
        instead=clean_instead(entry.get("instead")),
    )


@dataclass(frozen=True)
class LocatedParts:
    """Spans and omissions of the answer; refused: (words of the comment, reason) of the parts without an effect."""

    spans: list[Span]
    omissions: list[Omission]
    unmatched: list[str]
    refused: list[tuple[str, str]]


def locate_parts(parts: list[Part], comment: str, completion: str, critic: str, threshold: float) -> LocatedParts:
    """Find what the parts of a comment quote in the completion.

    threshold: how similar a quotation must be to the words that it is found in. A part that praises or blames nothing
    that is there, or misses what is there, is refused; so is one that takes no side.
    """
    located = LocatedParts([], [], [], [])
    for part in parts:
        phrase = _phrase_range(part.phrase, comment)
        spans = _spans(part, phrase, completion, critic, threshold, located.unmatched)
        said = part.phrase or comment
        if part.opinion == "unsure":
            located.refused.append((said, NOT_SURE))
        elif part.missing and part.opinion == "poor" and not spans:
            if is_present(part.missing, completion):
                located.refused.append((said, NOT_MISSING))
            else:
                located.omissions.append(Omission(text=part.missing, phrase=phrase))
        elif not spans:
            located.refused.append((said, NO_PLACE))
        located.spans.extend(span for span in spans if part.opinion != "unsure" and _is_new(span, located.spans))
    located.spans.sort(key=lambda span: (span.start, span.end))
    return located


def _spans(
    part: Part, phrase: Range | None, completion: str, critic: str, threshold: float, unmatched: list[str]
) -> list[Span]:
    if part.opinion == "unsure":
        return []
    common: dict[str, Any] = {"label": part.opinion, "phrase": phrase, "reason": part.phrase, "critic": critic}
    if part.is_whole and not part.quotes:
        return [Span(start=0, end=len(completion), match="whole", **common)]
    matches = locate_quotes(
        list(part.quotes), completion, contexts=[part.phrase] * len(part.quotes), threshold=threshold
    )
    unmatched.extend(quote for quote, match in zip(part.quotes, matches, strict=True) if match is None)
    found = [match for match in matches if match is not None]
    spans = []
    for match in found:
        words = completion[match.start : match.end]
        is_corrected = part.opinion == "poor" and len(part.quotes) == 1 and part.instead != words.strip()
        spans.append(
            Span(
                start=match.start,
                end=match.end,
                match=match.kind,
                confidence=match.confidence,
                replacement=part.instead if is_corrected else None,
                **common,
            )
        )
    return spans


def _is_new(span: Span, spans: list[Span]) -> bool:
    return all((span.start, span.end, span.label) != (other.start, other.end, other.label) for other in spans)


def _phrase_range(phrase: str | None, comment: str) -> Range | None:
    match = locate_quote(phrase, comment) if phrase else None
    return (match.start, match.end) if match else None
