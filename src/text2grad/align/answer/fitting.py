"""Put new words into the place of old ones, in the spelling that the place asks for.

A sentence keeps its capital, "a" and "an" agree with the new word, a determiner or preposition is not written twice,
and a possessive ending stays. Where there is a source, it tells which preposition and whether "the" goes with a name.
"""

from __future__ import annotations

import re

from text2grad.align.answer.cuts import Cut, agreeing_article
from text2grad.text.lexicon import ARTICLES, FUNCTION_WORDS, NUMBER_WORDS, PREPOSITIONS, word_set

DETERMINERS = ARTICLES | word_set("this that these those his her its their our my your some any another")
_WORD_BEFORE = re.compile(r"(\S+)\s+$")
_WORD_AFTER = re.compile(r"\s*([^\W_]+)")
_MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_IN_DATE = re.compile(rf"(?:{_MONTH} )?(?:1[5-9]|20)\d\d|{_MONTH}")
_ON_DATE = re.compile(
    rf"\d{{1,2}} {_MONTH}(?: \d{{4}})?|{_MONTH} \d{{1,2}}(?:, \d{{4}})?|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
)
_POSSESSIVE = ("'s", "’s")
_ENDING = 3  # letters that words of one form share: "raising", "lowering"
_SENTENCE_MARKS = ".!?\n"
_PLACE_PREPOSITIONS = word_set("in at on near from outside")


def fit_replacement(
    start: int, end: int, new: str, text: str, source: str | None = None, has_determiner: bool = False
) -> Cut:
    """Return the edit that puts `new` into the place of text[start:end].

    has_determiner: a determiner before the place was meant too ("the fourth day" of "a fourth day").
    """
    new = new.strip().rstrip(".,;:")
    while end > start and text[end - 1] in ".,;:!?":
        end -= 1
    old = text[start:end]
    if old.endswith(_POSSESSIVE) and not new.endswith((*_POSSESSIVE, "s'", "s’")):
        end -= 2
    before = _WORD_BEFORE.search(text[:start])
    lead = before[1].lower() if before else ""
    first, old_first = _first_word(new), _first_word(old)
    takes_determiner = lead in DETERMINERS and (first in DETERMINERS or has_determiner)
    takes_preposition = lead in PREPOSITIONS and first in PREPOSITIONS and old_first not in PREPOSITIONS
    if before and (takes_determiner or takes_preposition):
        start = before.start(1)
    elif before and source and lead in ARTICLES and _is_name(new) and _ends_phrase(text, end):
        start = before.start(1)
        new = f"the {new}" if re.search(rf"\bthe {re.escape(new)}", source, re.IGNORECASE) else new
    elif before and source and lead in _PLACE_PREPOSITIONS and (better := _preposition(lead, new, source)):
        start, new = before.start(1), f"{better} {new}"
    elif (needed := _date_preposition(new)) and not _date_preposition(old) and lead not in PREPOSITIONS | DETERMINERS:
        new = f"{needed} {new}"
    if not text[:start].strip() or text[:start].rstrip(" \t\"'“‘(")[-1:] in _SENTENCE_MARKS:
        new = new if text[start : start + 1].islower() else new[:1].upper() + new[1:]
    elif first in PREPOSITIONS | DETERMINERS and new.split()[0].capitalize() == new.split()[0]:
        new = new[:1].lower() + new[1:]
    before = _WORD_BEFORE.search(text[:start])
    if before and new:
        article = agreeing_article(before[1], new)
        if article != before[1]:
            return Cut(before.start(1), end, f"{article} {new}")
    return Cut(start, end, new)


def lower_start(new: str, old: str, known: str) -> str:
    """Return the first word of a sentence as it is written inside one, in the place of words that are no name.

    "Three cranes" puts "three" in the place of "two". known: a text; what it has in lower case is no name.
    """
    first = _WORD_AFTER.match(new)
    if first is None or not old[:1].islower() or not new[:1].isupper() or _first_word(old) in FUNCTION_WORDS:
        return new
    lowered = first[1].lower()
    is_common = lowered in NUMBER_WORDS or re.search(rf"(?<!\w){re.escape(lowered)}(?!\w)", known) is not None
    is_like = (
        len(old.split()) == len(new.split()) == 1 and old[-_ENDING:] == lowered[-_ENDING:] and len(old) > _ENDING + 1
    )
    return new[:1].lower() + new[1:] if first[1][1:].islower() and (is_common or is_like) else new


def _date_preposition(text: str) -> str | None:
    """Return the preposition that a date needs: "in May 2015", "on 9 April"."""
    return "in" if _IN_DATE.fullmatch(text) else "on" if _ON_DATE.fullmatch(text) else None


def _first_word(text: str) -> str:
    words = text.split()
    return words[0].lower() if words else ""


def _is_name(text: str) -> bool:
    words = [word for word in text.split() if word.lower() not in FUNCTION_WORDS]
    return bool(words) and all(word[0].isupper() for word in words)


def _ends_phrase(text: str, end: int) -> bool:
    """Whether what follows cannot belong to the same noun: punctuation, the end, or a function word."""
    following = _WORD_AFTER.match(text, end)
    return following is None or following[1].lower() in FUNCTION_WORDS


def _preposition(lead: str, new: str, source: str) -> str | None:
    """Return the preposition that the source writes before `new`, if it is another one than `lead`, and only that."""
    found = {match[1].lower() for match in re.finditer(rf"\b(\w+)\s+{re.escape(new)}\b", source, re.IGNORECASE)}
    used = found & _PLACE_PREPOSITIONS
    return used.pop() if len(used) == 1 and lead not in used else None
