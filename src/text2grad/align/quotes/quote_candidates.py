"""All places of a quotation in a text, from exact to fuzzy: those of the strictest comparison that finds any."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import Literal

from rapidfuzz.distance import Postfix, Prefix

from text2grad.align.quotes.fuzzy import find_similar_windows
from text2grad.align.quotes.normalize import (
    NormalizedText,
    fold_punctuation,
    fold_spaces,
    fold_typography,
    splits_words,
)
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
    yield [place for place in anywhere if not splits_words(text, (place.start, place.end))]
    by_words = [bounds for bounds in _find_folded(quote, text, fold_punctuation) if not splits_words(text, bounds)]
    yield [Match(*_widen_to_punctuation(bounds, quote, text), "normalized", _PUNCTUATION) for bounds in by_words]
    if len(quote) >= _MIN_INSIDE_WORD and not quote.isdigit():
        confidence = _LOOSE if " " in fold_punctuation(quote).text else _INSIDE_WORD
        yield [replace(place, confidence=confidence) for place in anywhere]
    yield _find_around_ellipsis(quote, text)
    if len(fold_spaces(quote).text) >= _MIN_WITHOUT_SPACES:
        joined = _find_folded(quote, text, fold_spaces)
        yield [Match(*_widen_to_punctuation(bounds, quote, text), "normalized", _LOOSE) for bounds in joined]
    normalized = fold_punctuation(text)
    yield [
        Match(*normalized.original_range(window.start, window.end), "fuzzy", window.similarity * _LOOSE)
        for window in find_similar_windows(fold_punctuation(quote), normalized, threshold)
    ]


def _find_literal(quote: str, text: str) -> list[Match]:
    """Return the occurrences that differ at most in case, white space and typography."""
    exact = {(at, at + len(quote)) for at in _find_all(quote, text)}
    loose = set(_find_folded(quote, text, fold_typography)) - exact
    matches = [Match(*bounds, "exact", _EXACT) for bounds in exact]
    return matches + [Match(*bounds, "normalized", _TYPOGRAPHY) for bounds in loose]


def _find_folded(quote: str, text: str, fold: Callable[[str], NormalizedText]) -> list[Range]:
    """Return the ranges of `text` that are the same as `quote` once both are normalised by `fold`."""
    needle, hay = fold(quote).text, fold(text)
    return [hay.original_range(at, at + len(needle)) for at in _find_all(needle, hay.text)]


def _widen_to_punctuation(bounds: Range, quote: str, text: str) -> Range:
    """Widen a range by the punctuation with which the quotation begins and ends, where the text has it too."""
    start, end = bounds
    words = fold_punctuation(quote)
    head, tail = quote[: words.starts[0]], quote[words.ends[-1] :]
    before, after = text[max(0, start - len(head)) : start], text[end : end + len(tail)]
    shared_before = before[len(before) - Postfix.similarity(head, before) :].lstrip()
    shared_after = after[: Prefix.similarity(tail, after)].rstrip()
    return start - len(shared_before), end + len(shared_after)


def _find_all(needle: str, hay: str) -> Iterator[int]:
    step = 1 if len(needle) < _MAX_SELF_OVERLAP else len(needle)
    at = hay.find(needle) if needle else -1
    while at >= 0:
        yield at
        at = hay.find(needle, at + step)


def _find_around_ellipsis(quote: str, text: str) -> list[Match]:
    """Match a quotation with "..." from its first to its last part: for each last part, the tightest range."""
    parts = [part for part in _ELLIPSIS.split(quote) if fold_punctuation(part).text]
    if len(parts) < 2:
        return []
    ranges = reduce(_chain, (_find_whole_words(part, text) for part in parts))
    return [Match(*bounds, "normalized", _LOOSE) for bounds in ranges]


def _find_whole_words(part: str, text: str) -> list[Range]:
    literal = [(place.start, place.end) for place in _find_literal(part, text)]
    ranges = literal or _find_folded(part, text, fold_punctuation)
    return sorted(bounds for bounds in ranges if not splits_words(text, bounds))


def _chain(before: list[Range], after: list[Range]) -> list[Range]:
    """Widen each range of `after` to the nearest range of `before` that ends close enough; one range per start."""
    ends = [end for _, end in before]
    widened: dict[int, Range] = {}
    for start, end in after:
        nearest = bisect_right(ends, start) - 1
        if nearest >= 0 and start - ends[nearest] <= _MAX_ELLIPSIS:
            widened.setdefault(before[nearest][0], (before[nearest][0], end))
    return list(widened.values())
