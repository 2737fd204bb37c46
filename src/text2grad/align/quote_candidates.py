"""All places of a quotation in a text, from exact to fuzzy: those of the strictest comparison that finds any."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Literal

from text2grad.align.fuzzy import find_similar_windows
from text2grad.align.normalize import NormalizedText, fold_punctuation, fold_spaces, fold_typography, splits_word
from text2grad.schema import Range

MatchKind = Literal["exact", "normalized", "fuzzy"]

# Confidence by comparison alone: an order, not calibrated; a looser comparison never beats a stricter one.
_EXACT, _TYPOGRAPHY, _PUNCTUATION, _LOOSE, _INSIDE_WORD = 1.0, 0.98, 0.95, 0.9, 0.6

_MIN_INSIDE_WORD = 4  # characters: "art" is not a quotation from "party", "report" is one from "reports"
_MIN_WITHOUT_SPACES = 16  # characters; without spaces, short strings occur by chance
_MAX_SELF_OVERLAP = 64  # characters; occurrences of longer quotations that overlap each other are skipped
_MAX_ELLIPSIS = 400
_ELLIPSIS = re.compile(r"\s*(?:[\[(]\s*)?(?:…|\.\s?\.\s?\.(?:\s?\.)*)\s*(?:[\])]\s*)?")


@dataclass(frozen=True)
class Match:
    """The range of a text that a quotation quotes; "exact" ignores only white space around the quotation.

    `confidence`, in (0, 1], falls with looser comparisons and when several places tie; a word found inside a longer
    one has at most 0.6.
    """

    start: int
    end: int
    kind: MatchKind
    confidence: float


def find_candidates(quote: str, text: str, threshold: float) -> list[Match]:
    """Return the matches of the strictest comparison that has any, in text order."""
    for places in _search(quote.strip(), text, threshold):
        if places:
            return sorted(places, key=lambda place: place.start)
    return []


def _search(quote: str, text: str, threshold: float) -> Iterator[list[Match]]:
    """Yield the matches of each comparison, from the strictest to the loosest."""
    if not quote or not text:
        return
    anywhere = _find_literal(quote, text)
    yield [place for place in anywhere if not _splits(text, place)]
    by_words = _find_normalized(fold_punctuation(quote), fold_punctuation(text), _PUNCTUATION)
    yield [_widen_to_punctuation(place, quote, text) for place in by_words if not _splits(text, place)]
    if len(quote) >= _MIN_INSIDE_WORD and not quote.isdigit():
        confidence = _LOOSE if " " in fold_punctuation(quote).text else _INSIDE_WORD
        yield [replace(place, confidence=confidence) for place in anywhere]
    yield _find_around_ellipsis(quote, text)
    if len(fold_spaces(quote).text) >= _MIN_WITHOUT_SPACES:
        joined = _find_normalized(fold_spaces(quote), fold_spaces(text), _LOOSE)
        yield [_widen_to_punctuation(place, quote, text) for place in joined]
    normalized = fold_punctuation(text)
    yield [
        Match(*normalized.original_range(window.start, window.end), "fuzzy", window.similarity * _LOOSE)
        for window in find_similar_windows(fold_punctuation(quote), normalized, threshold)
    ]


def _find_literal(quote: str, text: str) -> list[Match]:
    """Return the occurrences that differ at most in case, white space and typography."""
    exact = {(at, at + len(quote)) for at in _find_all(quote, text)}
    loose = {
        (place.start, place.end)
        for place in _find_normalized(fold_typography(quote), fold_typography(text), _TYPOGRAPHY)
    }
    return [Match(*bounds, "exact", _EXACT) for bounds in exact] + [
        Match(*bounds, "normalized", _TYPOGRAPHY) for bounds in loose - exact
    ]


def _find_normalized(needle: NormalizedText, hay: NormalizedText, confidence: float) -> list[Match]:
    ranges = [hay.original_range(at, at + len(needle.text)) for at in _find_all(needle.text, hay.text)]
    return [Match(*bounds, "normalized", confidence) for bounds in ranges]


def _widen_to_punctuation(place: Match, quote: str, text: str) -> Match:
    """Widen a match by the punctuation with which the quotation begins and ends, where the text has it too."""
    words = fold_punctuation(quote)
    head, tail = quote[: words.starts[0]], quote[words.ends[-1] :]
    before, after = text[max(0, place.start - len(head)) : place.start], text[place.end : place.end + len(tail)]
    start = place.start - len(_common_prefix(head[::-1], before[::-1]).rstrip())
    end = place.end + len(_common_prefix(tail, after).rstrip())
    return replace(place, start=start, end=end)


def _common_prefix(one: str, other: str) -> str:
    shared = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return "".join(char for char, _ in shared)


def _find_all(needle: str, hay: str) -> Iterator[int]:
    step = 1 if len(needle) < _MAX_SELF_OVERLAP else len(needle)
    at = hay.find(needle) if needle else -1
    while at >= 0:
        yield at
        at = hay.find(needle, at + step)


def _splits(text: str, place: Match) -> bool:
    return splits_word(text, place.start) or splits_word(text, place.end)


def _find_around_ellipsis(quote: str, text: str) -> list[Match]:
    """Match a quotation with "..." from its first to its last part: for each last part, the tightest range."""
    parts = [part for part in _ELLIPSIS.split(quote) if fold_punctuation(part).text]
    if len(parts) < 2:
        return []
    places = [sorted((place.start, place.end) for place in _find_whole_words(part, text)) for part in parts]
    ranges = places[0]
    for after in places[1:]:
        ranges = _chain(ranges, after)
    return [Match(start, end, "normalized", _LOOSE) for start, end in ranges]


def _find_whole_words(part: str, text: str) -> list[Match]:
    places = _find_literal(part, text)
    places = places or _find_normalized(fold_punctuation(part), fold_punctuation(text), _PUNCTUATION)
    return [place for place in places if not _splits(text, place)]


def _chain(before: list[Range], after: list[Range]) -> list[Range]:
    """Widen each range of `after` to the nearest range of `before` that ends close enough; one range per start."""
    ends = [end for _, end in before]
    widened: dict[int, Range] = {}
    for start, end in after:
        nearest = bisect_right(ends, start) - 1
        if nearest >= 0 and start - ends[nearest] <= _MAX_ELLIPSIS:
            widened.setdefault(before[nearest][0], (before[nearest][0], end))
    return list(widened.values())
