r"""A judgement in writing: the compact form that the reward model learns and writes.

    Critique: The source does not name a day.
    Good: none
    Poor: "on Friday"; "the man"#2
    Missing: "the deadline"

Quotations are exact parts of the answer, escaped as in JSON, so they can hold line breaks and quotation marks. `#2`
points at the second occurrence, or at the last one where there are fewer; without a number, at the first. Severity is
not spelled out: it is read from probabilities.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from text2grad.reward_model.settings import Limits, Order
from text2grad.rollout.grammar import QUOTE_CHUNK
from text2grad.schema import Feedback, Range

Label = Literal["good", "poor"]

MOST_OCCURRENCES = 9
NOTHING_TO_SAY = "Nothing stands out."
BREAKS = r"\x00-\x1f\x7f-\x9f\u2028\u2029"  # what prose does not hold: a line must stay one line
_TO_JSON = json.JSONEncoder(ensure_ascii=False).encode  # json.dumps would make an encoder for every word
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_BREAK = re.compile(f"[{BREAKS}]")
_ITEM = re.compile(r'("(?:[^"\\]|\\.)*")(?:#([1-9]\d*))?')


@dataclass(frozen=True)
class Judgement:
    """What is written about one answer; ranges are in the answer."""

    critique: str | None
    reasoning: str | None = None
    good: list[Range] = field(default_factory=list)
    poor: list[Range] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def spans(self) -> Iterator[tuple[Label, Range]]:
        yield from (("good", span) for span in self.good)
        yield from (("poor", span) for span in self.poor)


class UnreadableError(ValueError):
    """The text is not a judgement."""


def target(feedback: Feedback, answer: str, order: Order, limits: Limits) -> str:
    """What the model should have written. Everything in it is whole: what does not fit its limit is left out."""
    lines = [f"{name}: {_list(_quotations(feedback, answer, label, limits))}" for name, label in _LABELS.items()]
    missing = [_one_line(omission.text) for omission in feedback.omissions]
    fitting = [text for text in missing if text and len(text) <= limits.omission][: limits.omissions]
    lines.append(f"Missing: {_list(quoted(text) for text in fitting)}")
    if order == "spans_only":
        return "\n".join(lines)
    prose = [f"Critique: {_prose(feedback.critique, limits.critique)}"]
    if limits.reasoning:
        prose.insert(0, f"Reasoning: {_prose(feedback.reasoning or '', limits.reasoning)}")
    return "\n".join([*prose, *lines] if order == "critique_first" else [*lines, *prose])


_LABELS: dict[str, Label] = {"Good": "good", "Poor": "poor"}


def read(text: str, answer: str) -> Judgement:
    """The inverse of `target`, and of whatever the grammar lets a model write; raises UnreadableError."""
    lines = dict(line.split(": ", 1) for line in text.split("\n") if ": " in line)
    if not {"Good", "Poor", "Missing"} <= lines.keys():
        raise UnreadableError("the judgement does not close")
    return Judgement(
        critique=lines.get("Critique"),
        reasoning=lines.get("Reasoning"),
        good=_ranges(lines["Good"], answer),
        poor=_ranges(lines["Poor"], answer),
        missing=[quote for quote, _ in _items(lines["Missing"])],
    )


def chunks(text: str) -> list[Range]:
    """Where the words, spaces and marks of a text are."""
    return [match.span() for match in QUOTE_CHUNK.finditer(text)]


def whole_chunks(span: Range, answer: str) -> Range | None:
    """The span widened to whole chunks, without white space at its ends; None where nothing is left."""
    inside = [
        (start, end)
        for start, end in chunks(answer)
        if start < span[1] and end > span[0] and not answer[start:end].isspace()
    ]
    return (inside[0][0], inside[-1][1]) if inside else None


def quoted(text: str) -> str:
    """As JSON holds it, but with letters of all scripts as they are."""
    return _TO_JSON(text)


def shortened(prose: str, most: int) -> str:
    """Whole sentences while they fit; of a first sentence that is too long, whole words."""
    for units in (_SENTENCE_END.split(prose), prose.split()):
        kept = _while_fitting(units, most)
        if kept:
            return kept
    return ""


def _while_fitting(units: Sequence[str], most: int) -> str:
    kept = ""
    for unit in units:
        longer = f"{kept} {unit}".strip()
        if len(longer) > most:
            break
        kept = longer
    return kept


def _quotations(feedback: Feedback, answer: str, label: Label, limits: Limits) -> Iterator[str]:
    """In the order of the answer; the most severe ones where there are too many."""
    ranges: dict[Range, float] = {}
    for span in feedback.spans:
        whole = whole_chunks((span.start, span.end), answer) if span.label == label else None
        if whole and len(quoted(answer[whole[0] : whole[1]])) - 2 <= limits.quote:
            ranges[whole] = max(span.severity, ranges.get(whole, 0.0))
    chosen = sorted(ranges, key=lambda place: -ranges[place])[: limits.spans]
    for start, end in sorted(chosen):
        quote = answer[start:end]
        number = occurrences(quote, answer).index(start) + 1
        if number <= MOST_OCCURRENCES:
            yield quoted(quote) if number == 1 else f"{quoted(quote)}#{number}"


def occurrences(quote: str, answer: str) -> list[int]:
    """Where the quotation begins, overlapping ones included."""
    return [match.start() for match in re.finditer(f"(?={re.escape(quote)})", answer)]


def _ranges(line: str, answer: str) -> list[Range]:
    """What a line quotes; saying it twice makes it no worse."""
    return list(dict.fromkeys(_find(quote, number, answer) for quote, number in _items(line)))


def _find(quote: str, number: int, answer: str) -> Range:
    places = occurrences(quote, answer)
    if not quote or not places:
        raise UnreadableError(f"the answer does not contain {quoted(quote)}")
    start = places[min(number, len(places)) - 1]
    return start, start + len(quote)


def _items(line: str) -> list[tuple[str, int]]:
    if line == "none":
        return []
    items = []
    at = 0
    while match := _ITEM.match(line, at):
        items.append((_unquoted(match[1]), int(match[2] or 1)))
        at = match.end() + 2
        if match.end() == len(line):
            return items
        if line[match.end() : at] != "; ":
            break
    raise UnreadableError(f"not a list of quotations: {line[:80]}")


def _unquoted(quotation: str) -> str:
    try:
        return str(json.loads(quotation))
    except json.JSONDecodeError as error:
        raise UnreadableError(f"not a quotation: {quotation[:80]}") from error


def _list(items: Iterable[str]) -> str:
    return "; ".join(items) or "none"


def _prose(text: str, most: int) -> str:
    return shortened(_one_line(text), most) or NOTHING_TO_SAY[:most].rstrip()


def _one_line(text: str) -> str:
    return " ".join(_BREAK.sub(" ", text).split())
