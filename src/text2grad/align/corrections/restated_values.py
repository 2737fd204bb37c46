"""Clauses that give another value than the answer: "The fair raised $3,200.", "Should be Sunday.", "Tickets are $12."

No word of them need blame, and yet they correct: nearly all such clauses of `benchmarks/comments_train` blame, and most
of them the value that is found here.
"""

# ruff: noqa: E501  one pattern per line

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from text2grad.align.answer.document import Document
from text2grad.align.answer.kinds import MONTH, WEEKDAY, find_contradicted_values
from text2grad.schema import Range
from text2grad.text.lexicon import word_set
from text2grad.text.whitespace import key_set, part_key, split_words

_NAMED_DAY = re.compile(rf"\b(?:{WEEKDAY}|{MONTH})(?!\w)", re.IGNORECASE)
_WEEKDAY = re.compile(WEEKDAY, re.IGNORECASE)
_HEDGE = re.compile(
    r"\?|\b(?:maybe|perhaps|possibly|probably|might|could be|not (?:so )?(?:sure|certain)|unsure|or so"
    r"|i (?:guess|wonder)|if i remember)\b",
    re.IGNORECASE,
)
_DIFFERENCE = re.compile(
    r"\b(?:off|out|wrong|late|early|short|high|low|long|over|under|more|less|too \w+)\s+by\s+(?:about\s+|some\s+|a\s+good\s+)?$"
    r"|\b(?:another|an?\s+extra|a\s+further)\s+$",
    re.IGNORECASE,
)
_IS_DIFFERENCE = re.compile(
    r"\s*(?:too|more|less|fewer|later|earlier|longer|shorter|higher|lower|older|younger|off|extra|short|behind|ahead)\b"
    r"(?!\s+(?:like|than)\b)",
    re.IGNORECASE,
)
_EDGES = " \t\n.,;:!?\"'“”()"
_OF_VALUES = word_set("""
    wrong incorrect off right correct actually really rather change make should must year date day weekday time hour
    price cost fee number figure amount value
    """)  # which say no more than that a value is wrong
_STEM = 5  # letters by which words are akin: "delivery", "delivered"
_MIN_SHARED = 0.5  # of the other content words, which the sentence with the value has too
_MAX_WORDS = 24  # of a clause; longer ones say more
_MAX_OTHER_WORDS = 1  # of a clause that is hardly more than the value


class RestatedValue(NamedTuple):
    """phrase: the value in the comment. place: the value of the answer in whose place it belongs.

    is_written_alike: both are written in digits or both in words, so that one can stand in the place of the other.
    is_of_other: another sentence of the answer tells of what the clause gives the value of.
    """

    phrase: Range
    place: Range
    is_of_other: bool = False
    is_written_alike: bool = True


def is_hedged(text: str) -> bool:
    """Whether a clause asks or says that it is not sure."""
    return _HEDGE.search(text) is not None


def is_difference(text: str, start: int, end: int) -> bool:
    """Whether text[start:end] says how far a value is off, not what it should be: "off by ten euros", "3 too many"."""
    return bool(_DIFFERENCE.search(text[:start]) or _IS_DIFFERENCE.match(text, end))


def find_restated_value(
    comment: str, clause: Range, document: Document, other: Range | None = None
) -> RestatedValue | None:
    """Return the value that a clause corrects by giving another one; None if it says more, asks or hedges.

    other: words of the clause that are known to correct something else.
    """
    if other is not None:
        comment = comment[: other[0]] + " " * (other[1] - other[0]) + comment[other[1] :]
    text = comment[slice(*clause)]
    if document.program is not None or is_hedged(text) or text.count(" ") >= _MAX_WORDS:
        return None
    found = [p for p in find_contradicted_values(comment, clause, document) if len(p.places) == 1]
    if len(found) != 1:
        return None
    phrase = _strip(comment, found[0].phrase)
    if is_difference(comment, *phrase):
        return None
    place = _strip(document.text, found[0].places[0])
    given, written = comment[slice(*phrase)], document.text[slice(*place)]
    if _WEEKDAY.fullmatch(given) and (day := _WEEKDAY.search(written)):  # of "Tuesday 4 March", only the day is wrong
        place = (place[0] + day.start(), place[0] + day.end())
        written = day[0]
    if _is_same(given, written) or not _says_little_else(comment, clause, phrase, place, document):
        return None
    return RestatedValue(phrase, place, _is_of_other(comment[clause[0] : phrase[0]], place, document))


def _is_of_other(before: str, place: Range, document: Document) -> bool:
    """Whether only other sentences have what a clause starts with: "Delivery" of "Delivery costs $5", say."""
    subject = next((key for word in split_words(before) if word.is_content for key in word.keys), None)
    if subject is None or subject in _vague_keys() or "," in before:
        return False
    own = document.sentence_at(place[0])
    starts = {each: {key[:_STEM] for key in key_set(document.text[slice(*each)])} for each in document.sentences}
    with_subject = [each for each, known in starts.items() if subject[:_STEM] in known]
    return bool(with_subject) and own not in with_subject


def _says_little_else(comment: str, clause: Range, phrase: Range, place: Range, document: Document) -> bool:
    """Whether the rest of a clause is a word or two, or what the sentence of the value says too."""
    rest = f"{comment[clause[0] : phrase[0]]} {comment[phrase[1] : clause[1]]}"
    keys = {key for word in split_words(rest) if word.is_content for key in word.keys}
    keys -= _vague_keys()
    sentence = key_set(document.text[slice(*document.sentence_at(place[0]))])
    return len(keys) <= _MAX_OTHER_WORDS or len(keys & sentence) >= _MIN_SHARED * len(keys)


@cache
def _vague_keys() -> frozenset[str]:
    return frozenset(map(part_key, _OF_VALUES))


def _is_same(one: str, other: str) -> bool:
    """Whether two values have the same numbers and named days, however they are spelt: "8-hr", "eight hours"."""
    return _essence(one) == _essence(other)


def _essence(value: str) -> frozenset[str]:
    numbers = {key for key in key_set(value) if key[0].isdigit()}
    return frozenset(numbers | {day[0].lower()[:3] for day in _NAMED_DAY.finditer(value)}) or key_set(value)


def _strip(text: str, place: Range) -> Range:
    start, end = place
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip(_EDGES)), end - (len(piece) - len(piece.rstrip(_EDGES)))
