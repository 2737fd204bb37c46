"""Words between white space, with the parts and keys by which the learned aligner compares them.

A word such as "four-year-old", `max_count` or `maxCount` has several parts. The key of a part ignores case and
inflection; numbers in words and in digits share a key, so that "six" matches "6". For sentences, names and numbers
with units, see `text.words`.
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache
from itertools import chain, pairwise
from typing import NamedTuple

from text2grad.schema import Range
from text2grad.text import lexicon
from text2grad.text.lexicon import DIGITS, FUNCTION_WORDS, NUMBER_WORDS
from text2grad.text.stems import lower_word, stem

PUNCTUATION = ".,;:!?\"'`()[]{}“”‘’«»"
_ASCII_PUNCTUATION = ".,;:!?\"'()"
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
    """A word and its character range; `parts` are lower case, and equal `keys` mean the same word or number.

    is_content: whether the word is neither punctuation nor a function word. is_capitalized: whether the first character
    that is not punctuation is upper case.
    """

    start: int
    end: int
    text: str
    parts: tuple[str, ...]
    keys: tuple[str, ...]
    kind: WordKind
    sentence: int
    is_content: bool
    is_capitalized: bool


def word_ranges(text: str) -> list[Range]:
    """Return the characters of each word, and nothing else of it."""
    return [match.span() for match in _WORD.finditer(text)]


def split_words(text: str) -> list[WhitespaceWord]:
    """Split a text at white space. A full stop or an empty line ends a sentence."""
    return list(_split_words(text))


@lru_cache(maxsize=128)  # one comment is read with many questions to the same few texts
def _split_words(text: str) -> tuple[WhitespaceWord, ...]:
    words: list[WhitespaceWord] = []
    sentence = last_end = 0
    ended = False
    for match in _WORD.finditer(text):
        start, end = match.span()
        if words and (ended or (start - last_end > 1 and text.count("\n", last_end, start) > 1)):
            sentence += 1
        word = match[0]
        parts, keys, kind, is_content, capital, ended = _analyse(word, not words)
        words.append(WhitespaceWord(start, end, word, parts, keys, kind, sentence, is_content, capital))
        last_end = end
    return tuple(words)


@lru_cache(maxsize=1 << 15)
def _analyse(word: str, is_first: bool) -> tuple[tuple[str, ...], tuple[str, ...], WordKind, bool, bool, bool]:
    """Return the parts of a word, their keys, its kind, its two properties, and whether it ends a sentence."""
    parts = _parts_of_word(word)
    kind = _word_kind(word, parts, is_first)
    ends = _SENTENCE_END.search(word) is not None
    return parts, _keys_of_word(word), kind, kind >= WordKind.NUMBER, is_capitalized(word), ends


@lru_cache(maxsize=128)  # clauses, comments and answers are split by several who read them
def split_parts(text: str) -> tuple[str, ...]:
    """Return the words and numbers of a text in lower case, compounds and identifiers split."""
    return tuple(chain.from_iterable(map(_parts_of_word, text.split())))  # no part has white space inside


@lru_cache(maxsize=1 << 16)
def _parts_of_word(word: str) -> tuple[str, ...]:
    bare = word.strip(_ASCII_PUNCTUATION)
    if bare.isascii() and bare.isalpha() and bare[1:].islower():
        return (bare.lower(),)  # as the patterns find too, but slowly
    return tuple(lower_word(part) for run in _PART.findall(word) for part in _CAMEL_CASE.split(run))


@lru_cache(maxsize=1 << 16)
def part_key(part: str) -> str:
    """Return what a part shares with its inflections and, for a number, with its other spelling."""
    if part[0].isdigit():
        return part.replace(",", "")
    bare = part.removesuffix("'s")
    return str(NUMBER_WORDS[bare]) if bare in NUMBER_WORDS else stem(bare)


@lru_cache(maxsize=1 << 16)
def _keys_of_word(word: str) -> tuple[str, ...]:
    return tuple(map(part_key, _parts_of_word(word)))


@lru_cache(maxsize=32)  # a source is read for each clause of a comment
def split_keys(text: str) -> tuple[str, ...]:
    """Return the keys of all parts of a text, in order."""
    return tuple(chain.from_iterable(map(_keys_of_word, text.split())))


@lru_cache(maxsize=32)
def key_set(text: str) -> frozenset[str]:
    """Return the keys of a text's parts."""
    return frozenset(split_keys(text))


@lru_cache(maxsize=32)
def key_pairs(text: str) -> frozenset[tuple[str, str]]:
    """Return the pairs of keys that follow one another in a text."""
    return frozenset(pairwise(split_keys(text)))


_FUNCTION_PARTS = FUNCTION_WORDS - NUMBER_WORDS.keys()


def is_function_part(part: str) -> bool:
    """Whether a part is a function word, spelt numbers excluded."""
    return part in _FUNCTION_PARTS


@lru_cache(maxsize=1 << 15)
def is_capitalized(text: str) -> bool:
    """Whether the first character that is not punctuation is upper case."""
    return text.strip(PUNCTUATION)[:1].isupper()


def _word_kind(text: str, parts: tuple[str, ...], is_first: bool) -> WordKind:
    if not parts:
        return WordKind.PUNCTUATION
    if all(map(is_function_part, parts)):
        return next((kind for kind, members in _CLOSED_CLASSES.items() if parts[0] in members), WordKind.FUNCTION)
    if any(part in NUMBER_WORDS or part[0].isdigit() for part in parts):
        return WordKind.NUMBER
    return WordKind.NAME if is_capitalized(text) and not is_first else WordKind.OTHER
