"""In which form, and where, a quotation occurs in a text: the strictest form that occurs at all, all its places."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Literal

from text2grad.align.fuzzy import resembling
from text2grad.align.normalize import Spelling, folded, splits_word, squeezed, worded
from text2grad.schema import Range

How = Literal["exact", "normalized", "fuzzy"]

# How sure a match is by its form alone. Order, not calibration: a looser form never counts for more than a stricter.
_EXACT, _FOLDED, _WORDED, _LOOSE, _INSIDE_WORD = 1.0, 0.98, 0.95, 0.9, 0.6

_SHORTEST_INSIDE_WORD = 4  # "art" is not a quotation from "party", "report" is one from "reports"
_SHORTEST_SQUEEZED = 16  # without spaces, short strings turn up anywhere
_SELF_OVERLAPPING = 64  # from this length on, occurrences that overlap each other are not looked for
_WIDEST_ELLIPSIS = 400
_ELLIPSIS = re.compile(r"\s*(?:[\[(]\s*)?(?:…|\.\s?\.\s?\.(?:\s?\.)*)\s*(?:[\])]\s*)?")


@dataclass(frozen=True)
class Match:
    """text[start:end] is what a quotation quotes; if it is "exact", to the letter, but for white space at the ends.

    `confidence`, in (0, 1], falls with a looser form and when several places were equally good; one word found
    inside a longer one has at most 0.6.
    """

    start: int
    end: int
    how: How
    confidence: float


def occurrences(quote: str, text: str, threshold: float) -> list[Match]:
    """Every occurrence of the strictest form that has any, in text order."""
    for places in _forms(quote.strip(), text, threshold):
        if places:
            return sorted(places, key=lambda place: place.start)
    return []


def _forms(quote: str, text: str, threshold: float) -> Iterator[list[Match]]:
    """The quotation's places, form by form, from the strictest to the loosest."""
    if not quote or not text:
        return
    anywhere = _as_written(quote, text)
    yield [place for place in anywhere if not _splits(text, place)]
    in_words = [place for place in _in_spelling(worded(quote), worded(text), _WORDED) if not _splits(text, place)]
    yield [_with_end_marks(place, quote, text) for place in in_words]
    if len(quote) >= _SHORTEST_INSIDE_WORD and not quote.isdigit():
        confidence = _LOOSE if " " in worded(quote).text else _INSIDE_WORD
        yield [replace(place, confidence=confidence) for place in anywhere]
    yield _around_ellipsis(quote, text)
    if len(squeezed(quote).text) >= _SHORTEST_SQUEEZED:
        joined = _in_spelling(squeezed(quote), squeezed(text), _LOOSE)
        yield [_with_end_marks(place, quote, text) for place in joined]
    spelling = worded(text)
    yield [
        Match(*spelling.origin(window.start, window.end), "fuzzy", window.similarity * _LOOSE)
        for window in resembling(worded(quote), spelling, threshold)
    ]


def _as_written(quote: str, text: str) -> list[Match]:
    """Occurrences that are verbatim, or but for case, white space and typography."""
    exact = {(at, at + len(quote)) for at in _find_all(quote, text)}
    loose = {(place.start, place.end) for place in _in_spelling(folded(quote), folded(text), _FOLDED)}
    return [Match(*bounds, "exact", _EXACT) for bounds in exact] + [
        Match(*bounds, "normalized", _FOLDED) for bounds in loose - exact
    ]


def _in_spelling(needle: Spelling, hay: Spelling, confidence: float) -> list[Match]:
    size = len(needle.text)
    return [Match(*hay.origin(at, at + size), "normalized", confidence) for at in _find_all(needle.text, hay.text)]


def _with_end_marks(place: Match, quote: str, text: str) -> Match:
    """Widen a range of words by the punctuation with which the quotation begins and ends, where the text has it too."""
    words = worded(quote)
    head, tail = quote[: words.starts[0]], quote[words.ends[-1] :]
    before, after = text[max(0, place.start - len(head)) : place.start], text[place.end : place.end + len(tail)]
    start = place.start - len(_common_start(head[::-1], before[::-1]).rstrip())
    end = place.end + len(_common_start(tail, after).rstrip())
    return replace(place, start=start, end=end)


def _common_start(one: str, other: str) -> str:
    shared = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return "".join(char for char, _ in shared)


def _find_all(needle: str, hay: str) -> Iterator[int]:
    step = 1 if len(needle) < _SELF_OVERLAPPING else len(needle)
    at = hay.find(needle) if needle else -1
    while at >= 0:
        yield at
        at = hay.find(needle, at + step)


def _splits(text: str, place: Match) -> bool:
    return splits_word(text, place.start) or splits_word(text, place.end)


def _around_ellipsis(quote: str, text: str) -> list[Match]:
    """From the first to the last part of a quotation with "..." in it: for each last part, the tightest range."""
    parts = [part for part in _ELLIPSIS.split(quote) if worded(part).text]
    if len(parts) < 2:
        return []
    places = [sorted((place.start, place.end) for place in _whole(part, text)) for part in parts]
    ranges = places[0]
    for after in places[1:]:
        ranges = _chained(ranges, after)
    return [Match(start, end, "normalized", _LOOSE) for start, end in ranges]


def _whole(part: str, text: str) -> list[Match]:
    """Occurrences of one part of a quotation as whole words."""
    places = _as_written(part, text) or _in_spelling(worded(part), worded(text), _WORDED)
    return [place for place in places if not _splits(text, place)]


def _chained(before: list[Range], after: list[Range]) -> list[Range]:
    """Each range of `after`, widened to the nearest range of `before` that ends within reach; later twins dropped."""
    ends = [end for _, end in before]
    widened: dict[int, Range] = {}
    for start, end in after:
        nearest = bisect_right(ends, start) - 1
        if nearest >= 0 and start - ends[nearest] <= _WIDEST_ELLIPSIS:
            widened.setdefault(before[nearest][0], (before[nearest][0], end))
    return list(widened.values())
