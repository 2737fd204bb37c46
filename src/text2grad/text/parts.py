"""The words of an answer or a comment, and which of them say the same.

A word is what stands between white space. Its keys are its parts ("four-year-old", `max_count`, `maxCount`) without
case and inflection; numbers in words and in digits share a key, so that "six" is "6".
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from text2grad.text.lexicon import (
    ARTICLES,
    AUXILIARIES,
    CONJUNCTIONS,
    FUNCTION_WORDS,
    NUMBER_WORDS,
    PREPOSITIONS,
    SUBJECTS,
)
from text2grad.text.stems import stem

_WORD = re.compile(r"\S+")
_PART = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)*|[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_SENTENCE_END = re.compile(r"[.!?][\"'”’)\]]*$")
MARKS = ".,;:!?\"'`()[]{}“”‘’«»"


class Kind(IntEnum):
    """What a word is, as far as its letters tell."""

    MARK = 0
    ARTICLE = 1
    PREPOSITION = 2
    AUXILIARY = 3
    CONJUNCTION = 4
    SUBJECT = 5
    FUNCTION = 6
    NUMBER = 7
    NAME = 8
    OTHER = 9


class Word(NamedTuple):
    """A word at its place; `parts` are lower case, `keys` what they have in common with others that say the same."""

    start: int
    end: int
    text: str
    parts: tuple[str, ...]
    keys: tuple[str, ...]
    kind: Kind
    sentence: int

    @property
    def is_content(self) -> bool:
        return self.kind >= Kind.NUMBER

    @property
    def is_capital(self) -> bool:
        return self.text.strip(MARKS)[:1].isupper()


def cut(text: str) -> list[Word]:
    """The words of a text in order. A full stop or an empty line ends a sentence."""
    words: list[Word] = []
    sentence = 0
    for match in _WORD.finditer(text):
        between = text[words[-1].end : match.start()] if words else ""
        sentence += bool(words) and (bool(_SENTENCE_END.search(words[-1].text)) or between.count("\n") > 1)
        found = parts(match[0])
        kind = _kind(match[0], found, opens=not words)
        words.append(Word(*match.span(), match[0], found, tuple(map(key, found)), kind, sentence))
    return words


def parts(text: str) -> tuple[str, ...]:
    """The letters and numbers of a text in lower case, compound words and identifiers taken apart."""
    return tuple(part.lower().replace("’", "'") for run in _PART.findall(text) for part in _CAMEL.split(run))


@lru_cache(maxsize=1 << 16)
def key(part: str) -> str:
    """Equal for parts that say the same."""
    if part[0].isdigit():
        return part.replace(",", "")
    bare = part.removesuffix("'s")
    return str(NUMBER_WORDS[bare]) if bare in NUMBER_WORDS else stem(bare)


def is_function(part: str) -> bool:
    return part in FUNCTION_WORDS and part not in NUMBER_WORDS


def _kind(text: str, parts: tuple[str, ...], opens: bool) -> Kind:
    if not parts:
        return Kind.MARK
    if all(map(is_function, parts)):
        return _function_kind(parts[0])
    if any(part in NUMBER_WORDS or part[0].isdigit() for part in parts):
        return Kind.NUMBER
    return Kind.NAME if text.strip(MARKS)[:1].isupper() and not opens else Kind.OTHER


def _function_kind(part: str) -> Kind:
    classes = {
        Kind.ARTICLE: ARTICLES,
        Kind.PREPOSITION: PREPOSITIONS,
        Kind.AUXILIARY: AUXILIARIES,
        Kind.CONJUNCTION: CONJUNCTIONS,
        Kind.SUBJECT: SUBJECTS,
    }
    return next((kind for kind, members in classes.items() if part in members), Kind.FUNCTION)
