r"""The critique format: the compact text that the reward model learns to generate.

    Critique: The source does not name a day.
    Good: none
    Poor: "Friday" -> "Monday"; "the man"#2
    Missing: "the deadline"

Quotations are exact substrings of the completion, escaped as in JSON, so they can hold line breaks and quotation marks.
`#2` refers to the second occurrence, or to the last one where there are fewer; without a number, to the first. What
should stand in the place of a poor quotation follows the arrow, where it is known: free text, empty if the quotation
should be deleted. Severity is not part of the text: it comes from the head's probabilities.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, NonNegativeInt, PositiveInt

from text2grad.rollout.grammar import QUOTE_CHUNK
from text2grad.schema import Feedback, Label, Range, Span
from text2grad.settings import Settings

Order = Literal["critique_first", "spans_first", "spans_only"]

MAX_OCCURRENCE = 9
EMPTY_CRITIQUE = "Nothing stands out."
LINE_BREAKS = r"\x00-\x1f\x7f-\x9f\u2028\u2029"  # not allowed in prose: every field is one line
quote_json = json.JSONEncoder(ensure_ascii=False).encode  # json.dumps would build an encoder per call
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_LINE_BREAK = re.compile(f"[{LINE_BREAKS}]")
_STRING = r'"(?:[^"\\]|\\.)*"'
_QUOTATION = re.compile(f"({_STRING})(?:#([1-9]\\d*))?(?: -> ({_STRING}))?")
_QUOTATIONS = re.compile(f"{_QUOTATION.pattern}(?:; {_QUOTATION.pattern})*")
_LABELS: dict[str, Label] = {"Good": "good", "Poor": "poor"}


class CritiqueLimits(Settings):
    """Maximum size of each field of a generated critique; lengths count characters.

    The grammar enforces them, so that generation always terminates, and training targets are shortened to fit.
    """

    reasoning: NonNegativeInt = Field(0, description="of the reasoning before the critique; 0 omits the field")
    critique: PositiveInt = Field(300, description="of the critique")
    quote: Annotated[int, Field(ge=40)] = Field(200, description="of one quotation, after JSON escaping")
    spans: PositiveInt = Field(4, description="quotations per label")
    replacement: NonNegativeInt = Field(80, description="of one replacement; 0 omits all")
    omissions: NonNegativeInt = Field(2, description="omissions that are named")
    omission: PositiveInt = Field(120, description="of one omission")


class CritiqueFormat(Settings):
    """The fields of a generated critique: their order and their limits."""

    order: Order = Field("critique_first", description="what is written first, or nothing but the spans")
    limits: CritiqueLimits = CritiqueLimits()


@dataclass(frozen=True)
class WrittenCritique:
    """A parsed critique of one completion; ranges are in the completion.

    replacements: what should stand in the place of some of the poor ranges.
    """

    critique: str | None
    reasoning: str | None = None
    good: list[Range] = field(default_factory=list)
    poor: list[Range] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    replacements: dict[Range, str] = field(default_factory=dict)

    def spans(self) -> Iterator[tuple[Label, Range]]:
        """Yield the label and the range of each quotation."""
        yield from (("good", span) for span in self.good)
        yield from (("poor", span) for span in self.poor)


class CritiqueFormatError(ValueError):
    """The text is not in the critique format."""


def format_critique(feedback: Feedback, completion: str, critique_format: CritiqueFormat) -> str:
    """Return the training target for this feedback. Items over their limit are omitted whole, never cut."""
    limits = critique_format.limits
    lines = [f"{name}: {_join(_quotations(feedback, completion, label, limits))}" for name, label in _LABELS.items()]
    missing = [_one_line(omission.text) for omission in feedback.omissions]
    fitting = [text for text in missing if text and len(text) <= limits.omission][: limits.omissions]
    lines.append(f"Missing: {_join(quote_json(text) for text in fitting)}")
    if critique_format.order == "spans_only":
        return "\n".join(lines)
    prose = [f"Critique: {_prose(feedback.critique, limits.critique)}"]
    if limits.reasoning:
        prose.insert(0, f"Reasoning: {_prose(feedback.reasoning or '', limits.reasoning)}")
    return "\n".join([*prose, *lines] if critique_format.order == "critique_first" else [*lines, *prose])


def parse_critique(text: str, completion: str) -> WrittenCritique:
    """Parse what `format_critique` or the grammar produces; raises CritiqueFormatError."""
    lines = dict(line.split(": ", 1) for line in text.split("\n") if ": " in line)
    if not {"Good", "Poor", "Missing"} <= lines.keys():
        raise CritiqueFormatError("the critique is incomplete")
    poor = _find_quotations(lines["Poor"], completion)
    return WrittenCritique(
        critique=lines.get("Critique"),
        reasoning=lines.get("Reasoning"),
        good=list(_find_quotations(lines["Good"], completion)),
        poor=list(poor),
        missing=[item.quote for item in _parse_list(lines["Missing"])],
        replacements={span: text for span, text in poor.items() if text is not None},
    )


def expand_to_chunks(span: Range, completion: str) -> Range | None:
    """Return the span widened to whole chunks and stripped of white space, or None if nothing is left.

    Chunks are words, spaces and punctuation marks.
    """
    overlapping = (
        chunk for chunk in QUOTE_CHUNK.finditer(completion) if chunk.start() < span[1] and chunk.end() > span[0]
    )
    inside = [chunk for chunk in overlapping if not chunk[0].isspace()]
    return (inside[0].start(), inside[-1].end()) if inside else None


def shorten_prose(prose: str, max_chars: int) -> str:
    """Return the leading sentences that fit, or the leading words if the first sentence is too long."""
    for units in (_SENTENCE_END.split(prose), prose.split()):
        kept = _join_while_fitting(units, max_chars)
        if kept:
            return kept
    return ""


def find_occurrences(quote: str, completion: str) -> list[int]:
    """Return the start of every occurrence of the quotation, overlapping ones included."""
    return [match.start() for match in re.finditer(f"(?={re.escape(quote)})", completion)]


def _join_while_fitting(units: Sequence[str], max_chars: int) -> str:
    kept = ""
    for unit in units:
        longer = f"{kept} {unit}".strip()
        if len(longer) > max_chars:
            break
        kept = longer
    return kept


def _quotations(feedback: Feedback, completion: str, label: Label, limits: CritiqueLimits) -> Iterator[str]:
    """Yield quotations in the order of the completion; the most severe ones if there are too many."""
    severities: dict[Range, float] = {}
    replacements: dict[Range, str] = {}
    for span in feedback.spans:
        whole = expand_to_chunks((span.start, span.end), completion) if span.label == label else None
        if whole and len(quote_json(completion[whole[0] : whole[1]])) - 2 <= limits.quote:
            severities[whole] = max(span.severity, severities.get(whole, 0.0))
            replacement = _widened_replacement(span, whole, completion) if label == "poor" else None
            if replacement is not None and len(replacement) <= limits.replacement:
                replacements.setdefault(whole, replacement)
    kept = sorted(severities, key=lambda span: -severities[span])[: limits.spans]
    for start, end in sorted(kept):
        quote = completion[start:end]
        number = find_occurrences(quote, completion).index(start) + 1
        if number <= MAX_OCCURRENCE:
            replacement = replacements.get((start, end)) if limits.replacement else None
            arrow = "" if replacement is None else f" -> {quote_json(replacement)}"
            yield (quote_json(quote) if number == 1 else f"{quote_json(quote)}#{number}") + arrow


def _widened_replacement(span: Span, whole: Range, completion: str) -> str | None:
    """Return the replacement of the whole chunks; None if it is unknown or has more than one line."""
    if span.replacement is None or _LINE_BREAK.search(span.replacement):
        return None
    before, after = completion[whole[0] : max(span.start, whole[0])], completion[min(span.end, whole[1]) : whole[1]]
    return f"{before}{span.replacement}{after}".strip()


def _find_quotations(line: str, completion: str) -> dict[Range, str | None]:
    """Return the ranges that a line quotes, each with its replacement; that of the first quotation of a range."""
    found: dict[Range, str | None] = {}
    for item in _parse_list(line):
        found.setdefault(_find(item.quote, item.number, completion), item.replacement)
    return found


def _find(quote: str, number: int, completion: str) -> Range:
    starts = find_occurrences(quote, completion)
    if not quote or not starts:
        raise CritiqueFormatError(f"the completion does not contain {quote_json(quote)}")
    start = starts[min(number, len(starts)) - 1]
    return start, start + len(quote)


class _Quotation(NamedTuple):
    """One item of a list: the text, which occurrence of it, and what should stand there instead."""

    quote: str
    number: int
    replacement: str | None


def _parse_list(line: str) -> list[_Quotation]:
    if line != "none" and not _QUOTATIONS.fullmatch(line):
        raise CritiqueFormatError(f"not a list of quotations: {line[:80]}")
    try:
        return [
            _Quotation(json.loads(match[1]), int(match[2] or 1), json.loads(match[3]) if match[3] else None)
            for match in _QUOTATION.finditer(line)
        ]
    except json.JSONDecodeError as error:
        raise CritiqueFormatError(f"not a quotation: {error.doc[:80]}") from error


def _join(items: Iterable[str]) -> str:
    return "; ".join(items) or "none"


def _prose(text: str, max_chars: int) -> str:
    return shorten_prose(_one_line(text), max_chars) or EMPTY_CRITIQUE[:max_chars].rstrip()


def _one_line(text: str) -> str:
    return " ".join(_LINE_BREAK.sub(" ", text).split())
