"""Fuzzy search: the windows of a text that are most similar to a misquotation."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from rapidfuzz import fuzz
from rapidfuzz.distance import Levenshtein

from text2grad.align.quotes.normalize import NormalizedText
from text2grad.schema import Range

_MIN_LONG = 8  # words; longer quotations are searched by whole words: faster, and single typos matter less
_MIN_SHIFT = 3  # words by which a window's ends may move; in a long window a sixth of its words
_MISSPELLING_RATIO = 0.75  # similarity above which two words count as one word and its misspelling
_MAX_SHORT = 12  # characters; shorter quotations need a higher threshold, because short words look alike by chance
_SHORT_THRESHOLD = 0.88
_MAX_WINDOWS = 8
_TIE_MARGIN = 0.03

_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True)
class Window:
    """A range of whole words in the searched text, and its similarity to the quotation in [0, 1]."""

    start: int
    end: int
    similarity: float


def find_similar_windows(needle: NormalizedText, hay: NormalizedText, threshold: float) -> list[Window]:
    """Return the windows of `hay` that are most similar to `needle`, in text order; several if they tie.

    Two ratios must reach `threshold`: the characters shared by window and needle, and the needle's words, weighted by
    length, that the window has in order, misspellings included. Different numbers are different words, and below
    8 words no number may differ at all. A needle shorter than 12 characters needs 0.88.
    """
    if not needle.text or not hay.text:
        return []
    if len(needle.text) < _MAX_SHORT:
        threshold = max(threshold, _SHORT_THRESHOLD)
    found = list(_search(needle, hay, hay.word_ranges(), threshold, _MAX_WINDOWS))
    best = max((window.similarity for window in found), default=0.0)
    return sorted(
        (window for window in found if window.similarity >= best - _TIE_MARGIN), key=lambda window: window.start
    )


def _search(
    needle: NormalizedText, hay: NormalizedText, words: list[Range], threshold: float, max_windows: int
) -> Iterator[Window]:
    """Yield the best window among `words`, then the best ones before and after it."""
    if not words or not max_windows:
        return
    first, last = _refine(needle.text, hay.text, words, _initial_window(needle, hay, words, threshold))
    start, end = words[first][0], words[last][1]
    similarity = _similarity(needle.text, hay.text[start:end], threshold)
    if similarity < threshold:
        return
    yield Window(start, end, similarity)
    yield from _search(needle, hay, words[:first], threshold, max_windows // 2)
    yield from _search(needle, hay, words[last + 1 :], threshold, max_windows // 2)


def _initial_window(needle: NormalizedText, hay: NormalizedText, words: list[Range], threshold: float) -> Range:
    """Return the first and last word of the best window of rapidfuzz's partial ratio; (0, 0) if it has none."""
    needle_ranges = needle.word_ranges()
    if len(needle_ranges) >= _MIN_LONG:
        needle_words = [needle.text[start:end] for start, end in needle_ranges]
        hay_words = [hay.text[start:end] for start, end in words]
        if len(needle_words) >= len(hay_words):
            return 0, len(words) - 1
        by_word = fuzz.partial_ratio_alignment(needle_words, hay_words, score_cutoff=100 * threshold / 2)
        return (by_word.dest_start, max(by_word.dest_start, by_word.dest_end - 1)) if by_word else (0, 0)
    begin, stop = words[0][0], words[-1][1]
    if len(needle.text) >= stop - begin:
        return 0, len(words) - 1
    by_char = fuzz.partial_ratio_alignment(needle.text, hay.text[begin:stop], score_cutoff=100 * threshold - 15)
    if by_char is None:
        return 0, 0
    starts = [start for start, _ in words]
    first = bisect_right(starts, begin + by_char.dest_start) - 1
    last = bisect_left(starts, begin + by_char.dest_end) - 1
    return max(0, first), max(0, first, last)


def _refine(needle: str, hay: str, words: list[Range], window: Range) -> Range:
    """Move the window's start and end, in turn, to the words that maximise its similarity to the needle."""
    first, last = window
    shift = max(_MIN_SHIFT, (last - first) // 6)
    for _ in range(2):
        starts = range(max(0, first - shift), min(last, first + shift) + 1)
        first = max(starts, key=lambda word: fuzz.ratio(needle, hay[words[word][0] : words[last][1]]))
        ends = range(max(first, last - shift), min(len(words) - 1, last + shift) + 1)
        last = max(ends, key=lambda word: fuzz.ratio(needle, hay[words[first][0] : words[word][1]]))
    return first, last


def _similarity(needle: str, window: str, threshold: float) -> float:
    """Return the similarity in [0, 1]; 0 if the cheap checks already put it below the threshold."""
    words = needle.split(" ")
    ratio = fuzz.ratio(needle, window) / 100
    if ratio < threshold or (len(words) < _MIN_LONG and not _same_numbers(needle, window)):
        return 0.0
    return min(ratio, _matching_words_ratio(words, window.split(" ")))


def _matching_words_ratio(needle: list[str], window: list[str]) -> float:
    """Return the share of the needle's words, in characters, that the window has in order, misspellings included."""
    kept = done = other_done = 0
    for block in Levenshtein.editops(needle, window).as_matching_blocks():
        kept += _count_misspelt(needle[done : block.a], window[other_done : block.b])
        done, other_done = block.a + block.size, block.b + block.size
        kept += sum(map(len, needle[block.a : done]))
    return kept / sum(map(len, needle))


def _count_misspelt(words: list[str], others: list[str]) -> int:
    """Count the characters of `words` that match `others` in order up to misspelling; all if only spaces differ."""
    if "".join(words) == "".join(others):
        return sum(map(len, words))
    kept = next_other = 0
    for word in words:
        position = next((i for i in range(next_other, len(others)) if _is_misspelling(word, others[i])), None)
        if position is not None:
            kept, next_other = kept + len(word), position + 1
    return kept


def _is_misspelling(word: str, other: str) -> bool:
    return _same_numbers(word, other) and fuzz.ratio(word, other) >= 100 * _MISSPELLING_RATIO


def _same_numbers(one: str, other: str) -> bool:
    return _DIGITS.findall(one) == _DIGITS.findall(other)
