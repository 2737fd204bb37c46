"""Clauses that give another name than the answer: "Ann Lee is the CFO", "He was shot in Sarajevo", "It's Kelvin's law".

What holds the name tells which one of the answer it belongs in the place of: a role, a preposition, the noun after it.
"""

# ruff: noqa: E501  one pattern per line

from __future__ import annotations

import re
from functools import lru_cache

from text2grad.align.answer.document import Document
from text2grad.align.answer.kinds import MONTH, WEEKDAY
from text2grad.align.corrections.restated_values import RestatedValue, is_hedged
from text2grad.schema import Range
from text2grad.text.lexicon import FUNCTION_WORDS
from text2grad.text.whitespace import key_set, split_words

_NAME = r"[A-ZÀ-Þ][\w'’-]*(?: [A-ZÀ-Þ][\w'’-]*){0,2}"
_THE = r"(?:(?:[Tt]he|[Oo]ur|[Tt]heir|[Ii]ts|[Yy]our|an?) )?"
_LEAD = r"\W*(?:(?:[Bb]ut|[Nn]o|[Aa]ctually)\b,? )*"
_CALLED = r"(?:is|was)(?: (?:actually|really|in fact))?(?P<called> called| named)?"
_NAME_OF_ROLE = re.compile(
    rf"{_LEAD}(?P<name>{_NAME}) (?:is|was) (?=the |our |their |its |your ){_THE}(?P<role>\w[\w' -]{{1,40}})\W*"
)
_ROLE_OF_NAME = re.compile(
    rf"{_LEAD}{_THE}(?P<role>\w[\w' -]{{1,40}}?)(?:['’]s? (?P<which>first|given|last|family|sur) ?names?)? {_CALLED} (?P<name>{_NAME})\W*"
)
_LAST = ("last", "family", "sur")
_IN = r"(?P<preposition>[Ii]n|[Aa]t|[Nn]ear|[Ff]rom)"
_IN_NAME = re.compile(rf"\b{_IN} (?P<name>{_NAME})(?![\w-])(?!['’]s)")
_NO_PLACE = re.compile(rf"(?:{MONTH}|{WEEKDAY}|I|[Ss]pring|[Ss]ummer|[Aa]utumn|[Ww]inter)\b.*", re.IGNORECASE)
_NO_STATEMENT = re.compile(
    r"\b(?:not|never|no|nor|rather than|instead|i|me|my|we|us|our|you|your|if|would|could|like|as)\b|n['’]t\b|\?",
    re.IGNORECASE,
)
_VAGUE_SUBJECT = re.compile(
    r"\W*(?:(?:but|no|actually|sorry|well)\b,?\s+)*(?:it|he|she|they|that|this|all of (?:it|this|that)|in|at|near|from)\b",
    re.IGNORECASE,
)
_BEFORE_NOUN = re.compile(
    rf"{_LEAD}(?:(?:[Ii]t|[Tt]his|[Tt]hat|[Tt]hey)(?:['’]s| is| was|['’]re| are| were| should be)? )?(?:[Cc]alled )?{_THE}"
    r"(?P<name>[A-ZÀ-Þ][\w’'-]+) (?P<noun>[a-z][\w-]+(?: [a-z][\w-]+)?)\W*"
)
_NUMBERED = re.compile(
    rf"{_LEAD}(?:(?:[Ii]t|[Tt]his|[Tt]hat)(?:['’]s| is| was| should be)? )?{_THE}(?P<head>[A-Za-zÀ-ÿ]{{3,}}) (?P<number>\d{{1,4}})\W*"
)
_MAX_OTHER = 3  # content words of a clause that starts with a pronoun, besides the name
_MAX_WORDS = 16


def find_restated_name(comment: str, clause: Range, document: Document) -> RestatedValue | None:
    """Return the name that a clause corrects by giving another one in the same place; None if none is certain."""
    text = comment[slice(*clause)]
    if document.program is not None or is_hedged(text) or text.count(" ") >= _MAX_WORDS:
        return None
    readers = (_of_role, _before_noun, _after_noun)
    return next((value for read in readers if (value := read(comment, clause, document))), None)


def find_restated_place(comment: str, clause: Range, document: Document) -> RestatedValue | None:
    """Return the place that a clause corrects: "The murder happened in Sarajevo" of "the murder in Vienna"."""
    text = comment[slice(*clause)]
    if document.program is not None or is_hedged(text) or _NO_STATEMENT.search(text) or text.count(" ") >= _MAX_WORDS:
        return None
    own = key_set(document.text)
    given = [match for match in _names_after(text) if own.isdisjoint(key_set(match["name"]))]
    if len(given) != 1:
        return None
    uses = [m for m in _names_after(document.text) if m["preposition"].lower() == given[0]["preposition"].lower()]
    said = _content(text[: given[0].start()] + " " + text[given[0].end() :])
    scored = [(len(said & key_set(document.text[slice(*document.sentence_at(use.start()))])), use) for use in uses]
    best = [use for shared, use in scored if shared == max(other for other, _ in scored)]
    is_told = bool(scored) and max(shared for shared, _ in scored) > 0
    if len(best) != 1 or not (is_told or (_VAGUE_SUBJECT.match(text) and len(said) <= _MAX_OTHER)):
        return None
    start, end = given[0].span("name")
    return RestatedValue((clause[0] + start, clause[0] + end), best[0].span("name"))


@lru_cache(maxsize=32)
def _names_after(text: str) -> tuple[re.Match[str], ...]:
    """Return the names after prepositions of place that are no dates."""
    if " " not in text:
        return ()
    return tuple(match for match in _IN_NAME.finditer(text) if not _NO_PLACE.fullmatch(match["name"]))


def _content(text: str) -> set[str]:
    return {key for word in split_words(text) if word.is_content for key in word.keys}


def _of_role(comment: str, clause: Range, document: Document) -> RestatedValue | None:
    """Return the name of who has a role: "Ann Lee is the CFO" of "Bob Ray is the CFO"."""
    said = _NAME_OF_ROLE.fullmatch(comment, *clause) or _ROLE_OF_NAME.fullmatch(comment, *clause)
    if said is None or _is_word(said["name"]) or not key_set(said["name"]).isdisjoint(key_set(document.text)):
        return None
    role = rf"(?i:{re.escape(said['role'])})"
    before, after = "(?:,| is| was| became)(?: now)?", "(?:,| is| was|:)?"
    held = rf"(?P<name>{_NAME}){before} {_THE}{role}(?!\w)|(?<!\w){role}{after} (?P<last>{_NAME})"
    found = list(re.finditer(held, document.text))
    if len(found) != 1:
        return None
    group = "name" if found[0]["name"] else "last"
    if _is_word(found[0][group]):
        return None
    groups = said.groupdict()
    which = groups.get("which") or ("first" if groups.get("called") and " " not in said["name"] else None)
    place = _part_of_name(document.text, found[0].span(group), which)
    return RestatedValue(said.span("name"), place)


def _part_of_name(text: str, place: Range, which: str | None) -> Range:
    """Return the first or the last word of a name of several words, or all of it."""
    words = list(re.finditer(r"\S+", text[slice(*place)]))
    if which is None or len(words) < 2:
        return place
    start, end = words[-1 if which in _LAST else 0].span()
    return place[0] + start, place[0] + end


def _before_noun(comment: str, clause: Range, document: Document) -> RestatedValue | None:
    """Return the name that stands before the same noun: "It's Rayleigh scattering" of "called Mie scattering"."""
    said = _BEFORE_NOUN.fullmatch(comment, *clause)
    if said is None or _is_word(said["name"]) or not key_set(said["name"]).isdisjoint(key_set(document.text)):
        return None
    found = [
        match
        for match in re.finditer(rf"(?P<name>[A-ZÀ-Þ][\w’'-]+) {re.escape(said['noun'])}(?!\w)", document.text)
        if not _starts_sentence(match.start(), document) and not _is_word(match["name"])
    ]
    return RestatedValue(said.span("name"), found[0].span("name")) if len(found) == 1 else None


def _after_noun(comment: str, clause: Range, document: Document) -> RestatedValue | None:
    """Return the number that stands after the same noun or name: "It was Apollo 11" of "called Apollo 13"."""
    said = _NUMBERED.fullmatch(comment, *clause)
    if said is None or said["head"].lower() in FUNCTION_WORDS or re.fullmatch(MONTH, said["head"], re.IGNORECASE):
        return None
    found = list(
        re.finditer(rf"(?<!\w){re.escape(said['head'])} (?P<number>\d+)(?![\w.,]*\d)", document.text, re.IGNORECASE)
    )
    if len(found) != 1 or found[0]["number"] == said["number"]:
        return None
    return RestatedValue(said.span("number"), found[0].span("number"))


def _starts_sentence(position: int, document: Document) -> bool:
    return any(start == position for start, _ in document.sentences)


def _is_word(name: str) -> bool:
    """Whether a name is a word at the start of a sentence."""
    return name.split()[0].lower() in FUNCTION_WORDS
