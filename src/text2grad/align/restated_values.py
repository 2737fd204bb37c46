"""Clauses that give another value than the answer: "The fair raised $3,200.", "Should be Sunday.", "Tickets are $12."

No word of them need blame, and yet they correct: nearly all such clauses of `benchmarks/comments_train` blame, and most
of them the value that is found here.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from text2grad.align.document import Document
from text2grad.align.kinds import MONTH, WEEKDAY, find_contradicted_values
from text2grad.schema import Range
from text2grad.text.lexicon import FUNCTION_WORDS, word_set
from text2grad.text.whitespace import key_set, part_key, split_words

_NAMED_DAY = re.compile(rf"\b(?:{WEEKDAY}|{MONTH})(?!\w)", re.IGNORECASE)
_WEEKDAY = re.compile(WEEKDAY, re.IGNORECASE)
_HEDGE = re.compile(
    r"\?|\b(?:maybe|perhaps|possibly|probably|might|could be|not (?:so )?(?:sure|certain)|unsure|or so"
    r"|i (?:guess|wonder)|if i remember)\b",
    re.IGNORECASE,
)
_EDGES = " \t\n.,;:!?\"'“”()"
_OF_VALUES = word_set("""
    wrong incorrect off right correct actually really rather change make should must year date day weekday time hour
    price cost fee number figure amount value
    """)  # which say no more than that a value is wrong
_NAME = r"[A-ZÀ-Þ][\w'’-]*(?: [A-ZÀ-Þ][\w'’-]*){0,2}"
_THE = r"(?:(?:[Tt]he|[Oo]ur|[Tt]heir|[Ii]ts|[Yy]our|an?) )?"
_LEAD = r"\W*(?:(?:[Bb]ut|[Nn]o|[Aa]ctually)\b,? )*"
_NAME_OF_ROLE = re.compile(
    rf"{_LEAD}(?P<name>{_NAME}) (?:is|was) (?=the |our |their |its |your ){_THE}(?P<role>\w[\w' -]{{1,40}})\W*"
)
_ROLE_OF_NAME = re.compile(rf"{_LEAD}{_THE}(?P<role>\w[\w' -]{{1,40}}?) (?:is|was) (?P<name>{_NAME})\W*")
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


def find_restated_value(comment: str, clause: Range, document: Document) -> RestatedValue | None:
    """Return the value that a clause corrects by giving another one; None if it says more, asks or hedges."""
    text = comment[slice(*clause)]
    if document.program is not None or is_hedged(text) or text.count(" ") >= _MAX_WORDS:
        return None
    found = [p for p in find_contradicted_values(comment, clause, document) if len(p.places) == 1]
    if len(found) != 1:
        return None
    phrase = _strip(comment, found[0].phrase)
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
    with_subject = [each for each in document.sentences if subject in key_set(document.text[slice(*each)])]
    return bool(with_subject) and own not in with_subject


def find_restated_name(comment: str, clause: Range, document: Document) -> RestatedValue | None:
    """Return the name that a clause corrects by saying who has a role: "Ann Lee is the CFO" of "Bob Ray is the CFO"."""
    said = _NAME_OF_ROLE.fullmatch(comment, *clause) or _ROLE_OF_NAME.fullmatch(comment, *clause)
    if said is None or document.program is not None or _is_word(said["name"]):
        return None
    role = re.escape(said["role"])
    before, after = "(?:,| is| was| became)(?: now)?", "(?:,| is| was|:)?"
    held = rf"(?P<name>{_NAME}){before} {_THE}{role}(?!\w)|(?<!\w){role}{after} (?P<last>{_NAME})"
    found = list(re.finditer(held, document.text))
    if len(found) != 1 or not key_set(said["name"]).isdisjoint(key_set(document.text)):
        return None
    group = "name" if found[0]["name"] else "last"
    return None if _is_word(found[0][group]) else RestatedValue(said.span("name"), found[0].span(group))


def _is_word(name: str) -> bool:
    """Whether a name is a word at the start of a sentence."""
    return name.split()[0].lower() in FUNCTION_WORDS


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
