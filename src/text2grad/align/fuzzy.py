"""The stretch of a text that most resembles a misquotation, or nothing."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from rapidfuzz import fuzz
from rapidfuzz.distance import Levenshtein

from text2grad.align.normalize import Spelling
from text2grad.schema import Range

_LONG = 8  # words from which on windows are searched by whole words: it is faster, and single typos no longer matter
_REACH = 3  # words by which a window's ends may move, in a long one a sixth of its words
_SAME_WORD = 0.75  # likeness at which two different words are one word and its misspelling
_SHORT = 12  # characters below which a misquotation must be almost right: by chance, short words look alike
_SHORT_THRESHOLD = 0.88
_MOST = 8  # windows reported at most
_EQUALLY_GOOD = 0.03

_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True)
class Window:
    """A range of whole words in the searched spelling, and how much it resembles what was sought, in [0, 1]."""

    start: int
    end: int
    similarity: float


def resembling(needle: Spelling, hay: Spelling, threshold: float) -> list[Window]:
    """The windows of `hay` that resemble `needle` best, in text order; several if they are equally good.

    A window must share the share `threshold` of its characters with the needle, and of the needle's words the share
    `threshold`, counted in characters, must be there in order, if misspelt; another number is another word, and below
    8 words no number may differ at all. A needle shorter than 12 characters needs 0.88.
    """
    if not needle.text or not hay.text:
        return []
    if len(needle.text) < _SHORT:
        threshold = max(threshold, _SHORT_THRESHOLD)
    found = list(_search(needle, hay, hay.words(), threshold, _MOST))
    best = max((window.similarity for window in found), default=0.0)
    return sorted(
        (window for window in found if window.similarity >= best - _EQUALLY_GOOD), key=lambda window: window.start
    )


def _search(needle: Spelling, hay: Spelling, words: list[Range], threshold: float, most: int) -> Iterator[Window]:
    """The best window among `words`, then the best ones before and after it."""
    if not words or not most:
        return
    first, last = _refined(needle.text, hay.text, words, _rough(needle, hay, words, threshold))
    start, end = words[first][0], words[last][1]
    similarity = _similarity(needle.text, hay.text[start:end], threshold)
    if similarity < threshold:
        return
    yield Window(start, end, similarity)
    yield from _search(needle, hay, words[:first], threshold, most // 2)
    yield from _search(needle, hay, words[last + 1 :], threshold, most // 2)


def _rough(needle: Spelling, hay: Spelling, words: list[Range], threshold: float) -> Range:
    """First and last word of the window that rapidfuzz's sliding comparison likes best; (0, 0) if it likes none."""
    sought = needle.words()
    if len(sought) >= _LONG:
        wanted = [needle.text[start:end] for start, end in sought]
        given = [hay.text[start:end] for start, end in words]
        if len(wanted) >= len(given):
            return 0, len(words) - 1
        by_word = fuzz.partial_ratio_alignment(wanted, given, score_cutoff=100 * threshold / 2)
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


def _refined(needle: str, hay: str, words: list[Range], rough: Range) -> Range:
    """Move the window's start and end, in turn, to the words at which it resembles the needle most."""
    first, last = rough
    reach = max(_REACH, (last - first) // 6)
    for _ in range(2):
        starts = range(max(0, first - reach), min(last, first + reach) + 1)
        first = max(starts, key=lambda word: fuzz.ratio(needle, hay[words[word][0] : words[last][1]]))
        ends = range(max(first, last - reach), min(len(words) - 1, last + reach) + 1)
        last = max(ends, key=lambda word: fuzz.ratio(needle, hay[words[first][0] : words[word][1]]))
    return first, last


def _similarity(needle: str, window: str, threshold: float) -> float:
    """In [0, 1]; 0 as soon as it is clear that it is below the threshold."""
    words = needle.split(" ")
    ratio = fuzz.ratio(needle, window) / 100
    if ratio < threshold or (len(words) < _LONG and not _same_numbers(needle, window)):
        return 0.0
    return min(ratio, _words_kept(words, window.split(" ")))


def _words_kept(needle: list[str], window: list[str]) -> float:
    """The share of the needle's words, in characters, that the window has in the same order, misspellings included."""
    kept = done = other_done = 0
    for block in Levenshtein.editops(needle, window).as_matching_blocks():
        kept += _misspelt_part(needle[done : block.a], window[other_done : block.b])
        done, other_done = block.a + block.size, block.b + block.size
        kept += sum(map(len, needle[block.a : done]))
    return kept / sum(map(len, needle))


def _misspelt_part(words: list[str], others: list[str]) -> int:
    """The characters of those of `words` that are misspellings of some of `others`, in order, or but for spaces."""
    if "".join(words) == "".join(others):
        return sum(map(len, words))
    kept = next_other = 0
    for word in words:
        for position in range(next_other, len(others)):
            if _misspelt(word, others[position]):
                kept += len(word)
                next_other = position + 1
                break
    return kept


def _misspelt(word: str, other: str) -> bool:
    return _same_numbers(word, other) and fuzz.ratio(word, other) >= 100 * _SAME_WORD


def _same_numbers(one: str, other: str) -> bool:
    return _DIGITS.findall(one) == _DIGITS.findall(other)
