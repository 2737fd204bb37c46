"""What is left of a text when some of its words are removed, and whether it still reads.

Spaces and commas that only the removed words needed go with them, a sentence keeps its capital and its full stop, and
"a" and "an" agree with the word that follows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
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


def still_reads(words: Sequence[WhitespaceWord], first: int, last: int) -> bool:
    """Whether the rest may be a sentence without words[first:last]: no word is left hanging ("Games in.").

    Errs towards no: what is cut is a whole phrase as far as its first, last and neighbouring words show.
    """
    removed = words[first:last]
    before = words[first - 1] if first and words[first - 1].sentence == words[first].sentence else None
    after = words[last] if last < len(words) and words[last].sentence == words[last - 1].sentence else None
    if before is None and after is None:
        return True
    if removed[0].sentence != removed[-1].sentence or len(_MARKS.findall(" ".join(word.text for word in removed))) % 2:
        return False
    left, right = (_bare(word) if word else "" for word in (before, after))
    tail, closing = _bare(removed[-1]), bool(_trailing(removed[-1].text))
    if tail in _DANGLING_END and tail not in _PARTICLES:
        return False  # the words that belong to it stay
    ends_phrase = after is None or closing
    if left in _DANGLING_END and ends_phrase:
        return False
    if left in _NEEDS_WORDS and not _continues_noun_phrase(words, last):
        return False
    if left in _NEEDS_VERB and right in FUNCTION_WORDS - AUXILIARIES:
        return False
    if _stands_for_article(removed[-1], left) and after and not (after.is_capitalized or right.endswith("s")):
        return False
    if left in PREPOSITIONS and right in (PREPOSITIONS | CONJUNCTIONS | AUXILIARIES | word_set("who which that")):
        return False
    return not (before is None and right in (PREPOSITIONS | AUXILIARIES | CONJUNCTIONS | word_set("who which that")))


def _stands_for_article(word: WhitespaceWord, before: str) -> bool:
    """Whether a noun would lack its article without the word: "Monday's" of "in Monday's attack"."""
    return word.text.endswith(("'s", "’s")) and before not in _NEEDS_WORDS


def _continues_noun_phrase(words: Sequence[WhitespaceWord], position: int) -> bool:
    """Whether a noun may follow a determiner here: not "barked." of "The dog barked." """
    if position == len(words) or _bare(words[position]) in _DANGLING_END | {"not", "to"}:
        return False
    following = words[position + 1] if position + 1 < len(words) else None
    is_last = following is None or bool(_trailing(words[position].text)) or _bare(following) in FUNCTION_WORDS
    return not (is_last and _bare(words[position]).endswith("ed"))


def _trailing(word: str) -> str:
    """Return the punctuation at the end of a word that belongs to the sentence: not the point of "U.S."."""
    found = _TRAILING.search(word)
    return found[0] if found and found[0] != word else ""


def _bare(word: WhitespaceWord) -> str:
    return word.text.strip(".,;:!?\"'`()[]{}“”‘’«»").lower()
