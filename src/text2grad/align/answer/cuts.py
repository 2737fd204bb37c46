"""What is left of a text when some of its words are removed, and whether it still reads.

Spaces and commas that only the removed words needed go with them, a sentence keeps its capital and its full stop, and
"a" and "an" agree with the word that follows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from text2grad.text.lexicon import ARTICLES, AUXILIARIES, CONJUNCTIONS, FUNCTION_WORDS, PREPOSITIONS, word_set
from text2grad.text.whitespace import WhitespaceWord

_TRAILING = re.compile(r"[.!?,;:…]+$")
_MARKS = re.compile(r"[\"“”„«»()\[\]]")
_VOWEL_SOUND = re.compile(
    r"[\"'“‘(]*(?:[aeio]|u(?!ni|k\b|s[ea]|n\b|topia)|hour|honest|honou?r|heir|8|11\b|18\b)", re.IGNORECASE
)
_POSSESSIVES = word_set("my your his her its our their whose")
_DANGLING_END = ARTICLES | CONJUNCTIONS | PREPOSITIONS | AUXILIARIES | _POSSESSIVES | word_set("than as that which who")
_NEEDS_WORDS = ARTICLES | _POSSESSIVES
_NEEDS_VERB = word_set("has have had will would shall should can could may might must")
_PARTICLES = word_set("up down out off over in on away back through around by")
_BELONGS_BEFORE = _DANGLING_END - _PARTICLES
_NO_NOUN = _DANGLING_END | {"not", "to"}
_NO_VERB = FUNCTION_WORDS - AUXILIARIES
_CONTINUES = PREPOSITIONS | AUXILIARIES | CONJUNCTIONS | word_set("who which that")


class Cut(NamedTuple):
    """The characters [start, end) of a text and what stands there after the removal, mostly nothing."""

    start: int
    end: int
    replacement: str


def cut(text: str, words: Sequence[WhitespaceWord], first: int, last: int) -> Cut:
    """Return the edit that removes words[first:last] of `text`; the words are those of the whole text.

    The space before the words goes with them, where there is one: most tokens begin with theirs.
    """
    start, end = words[first].start, words[last - 1].end
    trailing = _trailing(words[last - 1].text)
    before = words[first - 1] if first else None
    following = words[last] if last < len(words) else None
    opens = before is None or before.sentence != words[first].sentence
    closes = following is None or following.sentence != words[last - 1].sentence
    if opens:
        if following is not None and not closes and not following.is_capitalized:
            return Cut(start, following.end, following.text[:1].upper() + following.text[1:])
        if before is not None:
            return Cut(before.end, end, "")
        return Cut(start, following.start if following else end, "")
    assert before is not None
    comma_before = before.text.endswith((",", ";", ":"))
    if closes or trailing:  # of two commas none stays, a single one moves to the word before
        start = before.end - 1 if comma_before else before.end
        return Cut(start, end if comma_before and not closes else end - len(trailing), "")
    assert following is not None
    article = agreeing_article(before.text, following.text)
    return Cut(before.end, end, "") if article == before.text else Cut(before.start, end, article)


def agreeing_article(article: str, following: str) -> str:
    """Return "a" or "an", whichever the next word asks for; any other word is returned as it is."""
    if article.lower() not in ("a", "an"):
        return article
    return article[0] + ("n" if _VOWEL_SOUND.match(following) else "")


def still_reads(
    words: Sequence[WhitespaceWord], first: int, last: int, marks_before: Sequence[int] | None = None
) -> bool:
    """Whether the rest may be a sentence without words[first:last]: no word is left hanging ("Games in.").

    Errs towards no: what is cut is a whole phrase as far as its first, last and neighbouring words show. marks_before:
    what `count_marks` returns, given by who asks about many runs.
    """
    head, final = words[first], words[last - 1]
    before = words[first - 1] if first and words[first - 1].sentence == head.sentence else None
    after = words[last] if last < len(words) and words[last].sentence == final.sentence else None
    if before is None and after is None:
        return True
    tail = _bare(final)
    if tail in _BELONGS_BEFORE or head.sentence != final.sentence:
        return False  # the words that belong to it stay
    left, right = _bare(before) if before else "", _bare(after) if after else ""
    if left in _DANGLING_END and (after is None or _trailing(final.text)):
        return False
    if left in _NEEDS_WORDS and not _continues_noun_phrase(words, last):
        return False
    if left in _NEEDS_VERB and right in _NO_VERB:
        return False
    if _stands_for_article(final, left) and after and not (after.is_capitalized or right.endswith("s")):
        return False
    if right in _CONTINUES and (before is None or left in PREPOSITIONS):
        return False
    marks = count_marks(words) if marks_before is None else marks_before
    return (marks[last] - marks[first]) % 2 == 0


def may_end_cut(words: Sequence[WhitespaceWord], last: int) -> bool:
    """Whether `still_reads` may hold of a run that ends before words[last]."""
    closes = last == len(words) or words[last].sentence != words[last - 1].sentence
    return closes or _bare(words[last - 1]) not in _BELONGS_BEFORE


def _stands_for_article(word: WhitespaceWord, before: str) -> bool:
    """Whether a noun would lack its article without the word: "Monday's" of "in Monday's attack"."""
    return word.text.endswith(("'s", "’s")) and before not in _NEEDS_WORDS


def _continues_noun_phrase(words: Sequence[WhitespaceWord], position: int) -> bool:
    """Whether a noun may follow a determiner here: not "barked." of "The dog barked." """
    if position == len(words) or _bare(words[position]) in _NO_NOUN:
        return False
    following = words[position + 1] if position + 1 < len(words) else None
    is_last = following is None or bool(_trailing(words[position].text)) or _bare(following) in FUNCTION_WORDS
    return not (is_last and _bare(words[position]).endswith("ed"))


@lru_cache(maxsize=1 << 14)
def _trailing(word: str) -> str:
    """Return the punctuation at the end of a word that belongs to the sentence: not the point of "U.S."."""
    found = _TRAILING.search(word)
    return found[0] if found and found[0] != word else ""


def count_marks(words: Sequence[WhitespaceWord]) -> list[int]:
    """Return how many quotation marks and brackets stand before each word, and in all words."""
    return list(accumulate([_count_marks(word.text) for word in words], initial=0))


@lru_cache(maxsize=1 << 14)
def _count_marks(word: str) -> int:
    return len(_MARKS.findall(word))


def _bare(word: WhitespaceWord) -> str:
    return _strip_marks(word.text)


@lru_cache(maxsize=1 << 14)
def _strip_marks(word: str) -> str:
    return word.strip(".,;:!?\"'`()[]{}“”‘’«»").lower()
