"""Words, sentences and names of an English text, for the rule critics.

`parse_text` splits a text into sentences of words with character offsets. Two words match when their keys are equal:
inflections and near derivations share a stem ("organised", "organisation"), numbers share a value ("€1,200", "1200").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import groupby
from typing import NamedTuple

from text2grad.text import lexicon
from text2grad.text.lexicon import ABBREVIATIONS, DIGITS, NUMBER_WORDS, SCALES, TENS, UNITS, word_set
from text2grad.text.stems import lower_word, stem

Key = str | float

_SCALE = "|".join(name for name in SCALES if len(name) > 2)
_SPELT = f"(?:{'|'.join(TENS)})-(?:{'|'.join(UNITS)})|{'|'.join(sorted(NUMBER_WORDS, key=len, reverse=True))}"
_SPELT_INITIALS = "".join(sorted({word[0] for word in NUMBER_WORDS}))  # a lookahead skips the long list for most words
_WORD = re.compile(
    rf"""[$£€¥]?{DIGITS}(?:[ ](?:{_SCALE}|am|pm)\b|[^\W\d_]+|%)?   # €6.4 million, 12,600, 71st, 9 am, 1990s, 40%
    |(?=[{_SPELT_INITIALS}])(?:{_SPELT})\b(?:[ ](?:{_SCALE})\b)?     # twenty-five, third, two million
    |(?:[^\W\d_]\.){{2,}}                                           # U.S., e.g.
    |[^\W_]+(?:['’][^\W_]+)*                                        # word, isn't, Seq2Seq
    """,
    re.VERBOSE | re.IGNORECASE,
)
_NUMBER = re.compile(rf"[$£€¥]?({DIGITS})[ ]?([^\W\d_]*)")
_SENTENCE_END = re.compile(r"(?<![.!?…])[.!?…]+[\"'”’»)\]*]*\s|[。！？\n]")
# Spelt like function words; only their capitals show that they are content.
_CONTENT_BY_CASE = frozenset({"US", "IT", "WHO", "May"})
_NAME_SEPARATORS = frozenset({" ", "-"})
_NAME_PARTICLES = word_set("of de del da do du des la le el al van von der den bin")
_GENERAL_STEMS = frozenset(map(stem, lexicon.GENERAL_WORDS))


class Lexeme(NamedTuple):
    """The properties of a word that follow from its spelling alone; `values` is empty unless it is a number."""

    stem: str
    values: tuple[float, ...]
    is_function: bool
    is_general: bool

    @property
    def is_number(self) -> bool:
        """Whether the word is a number, in digits or spelt out."""
        return bool(self.values)

    @property
    def key(self) -> Key:
        """Return the number or stem of the word: equal for words that mean the same."""
        return self.values[0] if self.values else self.stem


class Word(NamedTuple):
    """A word and its character range; a capital means nothing where `starts_sentence` is true."""

    start: int
    end: int
    text: str
    sentence: int
    starts_sentence: bool
    lexeme: Lexeme

    @property
    def is_content(self) -> bool:
        """Whether the word is more than a function word such as "the"."""
        return not self.lexeme.is_function

    @property
    def looks_like_name(self) -> bool:
        """Whether the word is capitalised where grammar does not require it, or has a capital inside."""
        if self.lexeme.is_function or self.lexeme.is_number:
            return False
        if self.starts_sentence:
            return any(letter.isupper() for letter in self.text[1:])
        return self.text[0].isupper()


@dataclass(frozen=True)
class Text:
    """A text and its words. `sentences` are non-empty ranges of word indices that tile the words.

    keys: one per word, equal for words that mean the same.
    """

    string: str
    words: tuple[Word, ...]
    keys: tuple[Key, ...]
    sentences: tuple[range, ...]

    @cached_property
    def names(self) -> tuple[range, ...]:
        """The word ranges of names: adjacent capitalised words, with at most one particle ("de", "of") in between."""
        return tuple(_find_names(self))

    def after(self, i: int) -> str:
        """Return the characters between word `i` and the next word, or the end of the text."""
        end = self.words[i + 1].start if i + 1 < len(self.words) else len(self.string)
        return self.string[self.words[i].end : end]


def parse_text(string: str) -> Text:
    """Split a text into words and sentences."""
    words: list[Word] = []
    starts: list[int] = []
    for match in _WORD.finditer(string):
        starts_sentence = not words or _ends_sentence(words[-1].text, string[words[-1].end : match.start()])
        if starts_sentence:
            starts.append(len(words))
        text = match.group()
        words.append(Word(match.start(), match.end(), text, len(starts) - 1, starts_sentence, parse_word(text)))
    stops = [*starts[1:], len(words)]
    keys = tuple(word.lexeme.key for word in words)
    return Text(string, tuple(words), keys, tuple(map(range, starts, stops)))


def _ends_sentence(word: str, gap: str) -> bool:
    if gap == " " or not _SENTENCE_END.search(gap):
        return False
    is_abbreviation = gap[0] == "." and (len(word) == 1 or word.lower() in ABBREVIATIONS)
    return not is_abbreviation or "\n" in gap


def consecutive_runs(indices: Iterable[int]) -> Iterator[range]:
    """Yield the maximal runs of consecutive numbers in ascending indices: 2, 3, 4, 7 give range(2, 5), range(7, 8)."""
    for _, run in groupby(enumerate(indices), key=lambda pair: pair[1] - pair[0]):
        members = [i for _, i in run]
        yield range(members[0], members[-1] + 1)


def _find_names(text: Text) -> Iterator[range]:
    for sentence in text.sentences:
        names: list[range] = []
        for i in sentence:
            if _is_name_word(text, i, sentence):
                continues = names and _continues_name(text, names[-1].stop, i)
                names.append(range(names.pop().start if continues else i, i + 1))
        yield from names


def _is_name_word(text: Text, i: int, sentence: range) -> bool:
    word = text.words[i]
    if not word.starts_sentence or word.looks_like_name:
        return word.looks_like_name
    # the capital of a sentence's first word means nothing, unless a name continues after it: "Kofi Asante started ..."
    before_name = i + 1 in sentence and text.words[i + 1].looks_like_name and text.after(i) in _NAME_SEPARATORS
    return before_name and word.is_content and not word.lexeme.is_number and word.text[0].isupper()


def _continues_name(text: Text, end: int, i: int) -> bool:
    if any(text.after(j) not in _NAME_SEPARATORS for j in range(end - 1, i)):
        return False
    return i == end or (i == end + 1 and text.words[end].text in _NAME_PARTICLES)


@lru_cache(maxsize=1 << 16)
def parse_word(text: str) -> Lexeme:
    """Return the lexeme of one word as `parse_text` splits it."""
    lowered = lower_word(text)
    values = _values(lowered)
    base = lowered.removesuffix("'s").replace(".", "")
    content_by_case = "." in text or text in _CONTENT_BY_CASE
    is_function = not values and not content_by_case and (base in lexicon.FUNCTION_WORDS or len(base) < 2)
    stemmed = base if is_function else stem(base)
    return Lexeme(stemmed, values, is_function, is_general=stemmed in _GENERAL_STEMS)


def _values(lowered: str) -> tuple[float, ...]:
    """Return the numbers that a word may mean: "7m" is seven (metres) or seven million."""
    if match := _NUMBER.match(lowered):
        digits, suffix = match.groups()
        value = _parse_digits(digits)
        if suffix not in SCALES:
            return (value,)
        scaled = value * SCALES[suffix]
        return (scaled,) if len(suffix) > 2 else (value, scaled)
    head, _, scale = lowered.partition(" ")
    tens, _, units = head.partition("-")
    if tens not in NUMBER_WORDS or (units and units not in UNITS):
        return ()
    return (float(NUMBER_WORDS[tens] + UNITS.get(units, 0)) * SCALES.get(scale, 1.0),)


def _parse_digits(digits: str) -> float:
    """Parse `1,200` as 1200, `6.4` as 6.4, `1.200.000` as 1200000; times like decimals, so that 6:30 is 6.30."""
    digits = digits.replace(",", "").replace(":", ".")
    return float(digits.replace(".", "") if digits.count(".") > 1 else digits)
