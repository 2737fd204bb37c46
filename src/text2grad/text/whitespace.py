"""Words between white space, with the parts and keys by which the learned aligner compares them.

A word such as "four-year-old", `max_count` or `maxCount` has several parts. The key of a part ignores case and
inflection; numbers in words and in digits share a key, so that "six" matches "6". For sentences, names and numbers
with units, see `text.words`.
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from text2grad.text import lexicon
from text2grad.text.lexicon import DIGITS, FUNCTION_WORDS, NUMBER_WORDS
from text2grad.text.stems import lower_word, stem

PUNCTUATION = ".,;:!?\"'`()[]{}“”‘’«»"
_WORD = re.compile(r"\S+")
_PART = re.compile(rf"{DIGITS}|[^\W\d_]+(?:['’][^\W\d_]+)*|[^\W_]+")
_CAMEL_CASE = re.compile(r"(?<=[a-z])(?=[A-Z])")
_SENTENCE_END = re.compile(r"[.!?][\"'”’)\]]*$")


class WordKind(IntEnum):
    """Part of speech of a word, as far as its spelling shows; the values are features of the trained aligner."""

    PUNCTUATION = 0
    ARTICLE = 1
    PREPOSITION = 2
    AUXILIARY = 3
    CONJUNCTION = 4
    SUBJECT = 5
    FUNCTION = 6
    NUMBER = 7
    NAME = 8
    OTHER = 9


_CLOSED_CLASSES = {
    WordKind.ARTICLE: lexicon.ARTICLES,
    WordKind.PREPOSITION: lexicon.PREPOSITIONS,
    WordKind.AUXILIARY: lexicon.AUXILIARIES,
    WordKind.CONJUNCTION: lexicon.CONJUNCTIONS,
    WordKind.SUBJECT: lexicon.SUBJECTS,
}


class WhitespaceWord(NamedTuple):
    """A word and its character range; `parts` are lower case, and equal `keys` mean the same word or number."""

    start: int
    end: int
    text: str
    parts: tuple[str, ...]
    keys: tuple[str, ...]
    kind: WordKind
    sentence: int

    @property
    def is_content(self) -> bool:
        """Whether the word is neither punctuation nor a function word."""
        return self.kind >= WordKind.NUMBER

    @property
    def is_capitalized(self) -> bool:
        """Whether the first character that is not punctuation is upper case."""
        return _is_capitalized(self.text)


def split_words(text: str) -> list[WhitespaceWord]:
    """Split a text at white space. A full stop or an empty line ends a sentence."""
    words: list[WhitespaceWord] = []
    sentence = 0
    for match in _WORD.finditer(text):
        gap = text[words[-1].end : match.start()] if words else ""
        sentence += bool(words) and (bool(_SENTENCE_END.search(words[-1].text)) or gap.count("\n") > 1)
        parts = split_parts(match[0])
        kind = _word_kind(match[0], parts, is_first=not words)
        words.append(WhitespaceWord(*match.span(), match[0], parts, tuple(map(part_key, parts)), kind, sentence))
    return words


def split_parts(text: str) -> tuple[str, ...]:
    """Return the words and numbers of a text in lower case, compounds and identifiers split."""
    return tuple(lower_word(part) for run in _PART.findall(text) for part in _CAMEL_CASE.split(run))


@lru_cache(maxsize=1 << 16)
def part_key(part: str) -> str:
    """Return what a part shares with its inflections and, for a number, with its other spelling."""
    if part[0].isdigit():
        return part.replace(",", "")
    bare = part.removesuffix("'s")
    return str(NUMBER_WORDS[bare]) if bare in NUMBER_WORDS else stem(bare)


def is_function_part(part: str) -> bool:
    """Whether a part is a function word, spelt numbers excluded."""
    return part in FUNCTION_WORDS and part not in NUMBER_WORDS


def _is_capitalized(text: str) -> bool:
    return text.strip(PUNCTUATION)[:1].isupper()


def _word_kind(text: str, parts: tuple[str, ...], is_first: bool) -> WordKind:
    if not parts:
        return WordKind.PUNCTUATION
    if all(map(is_function_part, parts)):
        return next((kind for kind, members in _CLOSED_CLASSES.items() if parts[0] in members), WordKind.FUNCTION)
    if any(part in NUMBER_WORDS or part[0].isdigit() for part in parts):
        return WordKind.NUMBER
    return WordKind.NAME if _is_capitalized(text) and not is_first else WordKind.OTHER
