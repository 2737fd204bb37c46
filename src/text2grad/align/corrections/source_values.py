"""Values that a clause takes from the source, found where the answer has another: "The head count should read 300."

The source says "hire 300 people" and the answer "hire 200 people": what surrounds a number, a day or a name in both
tells which one of the answer it belongs in the place of.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from text2grad.align.answer.document import Document
from text2grad.align.corrections.restated_values import RestatedValue, is_difference, is_hedged
from text2grad.schema import Range
from text2grad.text.lexicon import CALENDAR_WORDS
from text2grad.text.whitespace import PUNCTUATION, WhitespaceWord, WordKind, key_set, split_words

_WINDOW = 4  # words on each side whose content counts
_NEXT, _PREVIOUS, _NEAR, _MAX_NEAR = 1.5, 1.0, 0.5, 3  # for the same word right after, right before, and near it
_NOT_IN_SOURCE = 1.0  # for a value that the source does not have at all
_MIN_SCORE, _MIN_NAME_SCORE, _MIN_MARGIN = 2.0, 3.0, 0.5  # names of other things stand next to like words more often
_CONTRAST = re.compile(r"\b(?:not|rather than|instead of)\b|n['’]t\b", re.IGNORECASE)  # which says what it replaces
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
_JOINED_UNIT = re.compile(r"(?P<number>\d[\d.,]*)-[^\W\d]+")
_CURRENCIES = "$€£¥"
_VAGUE = frozenset("01")  # "one" is seldom a number


_Kind = Literal["number", "year", "percent", "calendar", "name"]


class _Value(NamedTuple):
    """Words [first, last] of a text that are one value."""

    kind: _Kind
    first: int
    last: int
    keys: frozenset[str]


def find_source_value(comment: str, clause: Range, document: Document, prompt: str) -> RestatedValue | None:
    """Return the one value of a clause that the source has and the answer has not, and the answer's in its context."""
    text = comment[slice(*clause)]
    if not prompt or document.program is not None or is_hedged(text) or _CONTRAST.search(text):
        return None
    given = [value for value in _values(text) if _is_of_source(value, document, prompt)]
    if len(given) != 1:
        return None
    said = key_set(text)
    scored = sorted(
        (
            (_score(given[0], own, document.text, prompt), own)
            for own in _values(document.text)
            if own.kind == given[0].kind and not own.keys <= said
        ),
        key=lambda pair: -pair[0],
    )
    wanted = _MIN_NAME_SCORE if given[0].kind == "name" else _MIN_SCORE
    if not scored or scored[0][0] < wanted:
        return None
    if len(scored) > 1 and scored[0][0] - scored[1][0] < _MIN_MARGIN:
        return None
    own = _narrow(given[0], scored[0][1], document.text, prompt) if given[0].kind == "name" else scored[0][1]
    (start, end), place = _place(text, given[0]), _place(document.text, own)
    if is_difference(text, start, end):
        return None
    if given[0].kind == "number":  # "40-metre" becomes "14-metre" by "14"
        (start, end), place = _without_unit(text, (start, end), document.text, place)
    written = document.text[slice(*place)]
    if text[start] in _CURRENCIES and written[0] not in _CURRENCIES:
        start += 1  # "50 pounds" becomes "15 pounds" by "£15"
    is_written_alike = _has_digit(text[start:end]) == _has_digit(written)
    return RestatedValue((clause[0] + start, clause[0] + end), place, is_written_alike=is_written_alike)


def _narrow(given: _Value, own: _Value, answer: str, prompt: str) -> _Value:
    """Return the words of a name in whose place the given ones stand: "Ann" of the source's "Mayor Ann Reed"."""
    words, source = split_words(answer), split_words(prompt)
    for use in _values(prompt):
        first, last, start, end = use.first, use.last, own.first, own.last
        while first < last and start < end and source[first].keys == words[start].keys:
            first, start = first + 1, start + 1
        while first < last and start < end and source[last].keys == words[end].keys:
            last, end = last - 1, end - 1
        is_given = given.keys == {key for word in source[first : last + 1] for key in word.keys}
        if is_given and (start, end) != (own.first, own.last):
            return own._replace(first=start, last=end)
    return own


def _without_unit(text: str, said: Range, answer: str, own: Range) -> tuple[Range, Range]:
    """Return both places without what is joined to a number by a hyphen, where only one of them has it."""
    found = [_JOINED_UNIT.fullmatch(part[slice(*place)]) for part, place in ((text, said), (answer, own))]
    if found[0] and not found[1]:
        said = (said[0], said[0] + found[0].end("number"))
    elif found[1] and not found[0]:
        own = (own[0], own[0] + found[1].end("number"))
    return said, own


def _has_digit(text: str) -> bool:
    return any(character.isdigit() for character in text)


def _is_of_source(value: _Value, document: Document, prompt: str) -> bool:
    return value.keys <= key_set(prompt) and not value.keys <= key_set(document.text)


def _score(given: _Value, own: _Value, answer: str, prompt: str) -> float:
    """Return how much more alike the answer's value and the source's are used than the answer's is to the source's."""
    score = _alike(given, own, answer, prompt)
    if own.keys <= key_set(prompt):
        return score - _alike(own, own, answer, prompt)
    return score + _NOT_IN_SOURCE


def _alike(said: _Value, own: _Value, answer: str, prompt: str) -> float:
    """Return how alike the surroundings of a value of the source and of one of the answer are, where most."""
    uses = [use for use in _values(prompt) if said.keys <= use.keys]
    after, before, near = _surroundings(answer, own)
    best = 0.0
    for use in uses:
        other_after, other_before, other_near = _surroundings(prompt, use)
        score = _NEAR * min(_MAX_NEAR, len(near & other_near))
        score += _NEXT * bool(after and after == other_after) + _PREVIOUS * bool(before and before == other_before)
        best = max(best, score)
    return best


def _surroundings(text: str, value: _Value) -> tuple[tuple[str, ...], tuple[str, ...], set[str]]:
    """Return the keys of the word after and before a value, and those of the content words near it."""
    words = split_words(text)
    sentence = words[value.first].sentence
    near = [*words[max(0, value.first - _WINDOW) : value.first], *words[value.last + 1 : value.last + 1 + _WINDOW]]
    keys = {key for word in near if word.is_content and word.sentence == sentence for key in word.keys}
    after = words[value.last + 1 : value.last + 2]
    before = words[max(0, value.first - 1) : value.first]
    return after[0].keys if after else (), before[0].keys if before else (), keys


@lru_cache(maxsize=32)  # source and answer are asked for with each clause
def _values(text: str) -> tuple[_Value, ...]:
    return tuple(_find_values(split_words(text)))


def _find_values(words: Sequence[WhitespaceWord]) -> Iterator[_Value]:
    i = 0
    while i < len(words):
        kind, last = _kind(words[i]), i
        if kind == "number" and any(word.text in ("x", "×") for word in (*words[i - 1 : i], *words[i + 1 : i + 2])):
            kind = None  # of "60 x 80", no single number is meant
        if kind == "name":
            while last + 1 < len(words) and _kind(words[last + 1]) == "name" and words[last].text[-1].isalnum():
                last += 1
        if kind is not None:
            yield _Value(kind, i, last, frozenset(key for word in words[i : last + 1] for key in word.keys))
        i = last + 1


def _kind(word: WhitespaceWord) -> _Kind | None:
    if not CALENDAR_WORDS.isdisjoint(word.parts):
        return "calendar"
    if word.kind == WordKind.NUMBER:  # of a range, or of "five-year-olds", no single number is meant
        if not _VAGUE.isdisjoint(word.keys) or not _has_digit(word.keys[0]) or len(word.keys) > 2:
            return None
        return "percent" if "%" in word.text else "year" if _YEAR.fullmatch(word.keys[0]) else "number"
    return "name" if word.kind == WordKind.NAME else None


def _place(text: str, value: _Value) -> Range:
    words = split_words(text)
    start, end = words[value.first].start, words[value.last].end
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip(PUNCTUATION)), end - (len(piece) - len(piece.rstrip(PUNCTUATION)))
