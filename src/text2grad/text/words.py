"""Words of an English text as a programmatic critic sees them: where they stand, and which others say the same.

`read` cuts a text into sentences of words with character offsets. Two words say the same when their keys are equal:
inflections and near derivations share a stem ("organised", "organisation"), numbers share a value ("€1,200", "1200").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from text2grad.text.lexicon import (
    ABBREVIATIONS,
    FUNCTION_WORDS,
    GENERAL_WORDS,
    NUMBER_WORDS,
    SCALES,
    TENS,
    UNITS,
    word_set,
)
from text2grad.text.stems import stem

Key = str | float

_DIGITS = r"\d+(?:[.,:]\d+)*"
_SCALE = "|".join(name for name in SCALES if len(name) > 2)
_SPELT = f"(?:{'|'.join(TENS)})-(?:{'|'.join(UNITS)})|{'|'.join(sorted(NUMBER_WORDS, key=len, reverse=True))}"
_SPELT_INITIALS = "".join(sorted({word[0] for word in NUMBER_WORDS}))  # a look ahead spares most words the long list
_WORD = re.compile(
    rf"""[$£€¥]?{_DIGITS}(?:[ ](?:{_SCALE}|am|pm)\b|[^\W\d_]+|%)?   # €6.4 million, 12,600, 71st, 9 am, 1990s, 40%
    |(?=[{_SPELT_INITIALS}])(?:{_SPELT})\b(?:[ ](?:{_SCALE})\b)?     # twenty-five, third, two million
    |(?:[^\W\d_]\.){{2,}}                                           # U.S., e.g.
    |[^\W_]+(?:['’][^\W_]+)*                                        # word, isn't, Seq2Seq
    """,
    re.VERBOSE | re.IGNORECASE,
)
_NUMBER = re.compile(rf"[$£€¥]?({_DIGITS})[ ]?([^\W\d_]*)")
_SENTENCE_END = re.compile(r"(?<![.!?…])[.!?…]+[\"'”’»)\]*]*\s|[。！？\n]")
# Function words by their letters, content by their capitals.
_CAPITALS_TELL = frozenset({"US", "IT", "WHO", "May"})
_NAME_JOINTS = frozenset({" ", "-"})
_NAME_PARTICLES = word_set("of de del da do du des la le el al van von der den bin")
_GENERAL_STEMS = frozenset(map(stem, GENERAL_WORDS))


class Lexeme(NamedTuple):
    """What the spelling of a word alone tells. `values` is empty unless the word is a number."""

    stem: str
    values: tuple[float, ...]
    is_function: bool
    is_general: bool

    @property
    def is_number(self) -> bool:
        return bool(self.values)

    @property
    def key(self) -> Key:
        """Equal for words that say the same."""
        return self.values[0] if self.values else self.stem


class Word(NamedTuple):
    """A word at its place; `opens` says that it is the first of its sentence, where a capital means nothing."""

    start: int
    end: int
    text: str
    sentence: int
    opens: bool
    lexeme: Lexeme

    @property
    def is_content(self) -> bool:
        return not self.lexeme.is_function

    @property
    def looks_like_name(self) -> bool:
        """Capitalised where the grammar does not ask for it, or with a capital inside."""
        if self.lexeme.is_function or self.lexeme.is_number:
            return False
        if self.opens:
            return any(letter.isupper() for letter in self.text[1:])
        return self.text[0].isupper()


class Text(NamedTuple):
    """A text and its words. `sentences` are ranges of word indices that tile the words; none is empty.

    keys: one for each word, equal for words that say the same.
    """

    string: str
    words: tuple[Word, ...]
    keys: tuple[Key, ...]
    sentences: tuple[range, ...]

    def after(self, i: int) -> str:
        """What stands between word `i` and the next one, or the end."""
        end = self.words[i + 1].start if i + 1 < len(self.words) else len(self.string)
        return self.string[self.words[i].end : end]


def read(string: str) -> Text:
    """The words and sentences of a text."""
    words: list[Word] = []
    starts: list[int] = []
    for match in _WORD.finditer(string):
        opens = not words or _ends_sentence(words[-1].text, string[words[-1].end : match.start()])
        if opens:
            starts.append(len(words))
        text = match.group()
        words.append(Word(match.start(), match.end(), text, len(starts) - 1, opens, lexeme(text)))
    stops = [*starts[1:], len(words)]
    keys = tuple(word.lexeme.key for word in words)
    return Text(string, tuple(words), keys, tuple(map(range, starts, stops)))


def _ends_sentence(word: str, gap: str) -> bool:
    if gap == " " or not _SENTENCE_END.search(gap):
        return False
    is_abbreviation = gap[0] == "." and (len(word) == 1 or word.lower() in ABBREVIATIONS)
    return not is_abbreviation or "\n" in gap


def runs(indices: Iterable[int]) -> Iterator[range]:
    """The maximal runs of consecutive numbers in ascending indices: 2, 3, 4, 7 are range(2, 5) and range(7, 8)."""
    start = end = -1
    for i in indices:
        if i != end:
            if start < end:
                yield range(start, end)
            start = i
        end = i + 1
    if start < end:
        yield range(start, end)


def names(text: Text) -> Iterator[range]:
    """Ranges of words that form names: neighbours with capitals, with at most one particle ("de", "of") between two."""
    for sentence in text.sentences:
        start = end = sentence.start
        for i in sentence:
            if not _is_name_word(text, i, sentence):
                continue
            if start < end and _continues_name(text, end, i):
                end = i + 1
                continue
            if start < end:
                yield range(start, end)
            start, end = i, i + 1
        if start < end:
            yield range(start, end)


def _is_name_word(text: Text, i: int, sentence: range) -> bool:
    word = text.words[i]
    if not word.opens or word.looks_like_name:
        return word.looks_like_name
    # the capital of an opening word means nothing, unless a name goes on after it: "Kofi Asante started ..."
    before_name = i + 1 in sentence and text.words[i + 1].looks_like_name and text.after(i) in _NAME_JOINTS
    return before_name and word.is_content and not word.lexeme.is_number and word.text[0].isupper()


def _continues_name(text: Text, end: int, i: int) -> bool:
    if any(text.after(j) not in _NAME_JOINTS for j in range(end - 1, i)):
        return False
    return i == end or (i == end + 1 and text.words[end].text in _NAME_PARTICLES)


@lru_cache(maxsize=1 << 16)
def lexeme(text: str) -> Lexeme:
    """The lexeme of one word as `read` cuts it."""
    lowered = text.lower().replace("’", "'")
    values = _values(lowered)
    base = lowered.removesuffix("'s").replace(".", "")
    capitals_tell = "." in text or text in _CAPITALS_TELL
    is_function = not values and not capitals_tell and (base in FUNCTION_WORDS or len(base) < 2)
    stemmed = base if is_function else stem(base)
    return Lexeme(stemmed, values, is_function, is_general=stemmed in _GENERAL_STEMS)


def _values(lowered: str) -> tuple[float, ...]:
    """The numbers that a word may stand for: "7m" is seven (metres) or seven million."""
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
    """`1,200` is 1200, `6.4` is 6.4, `1.200.000` is 1200000; times read like decimals, so that 6:30 is 6.30."""
    digits = digits.replace(",", "").replace(":", ".")
    return float(digits.replace(".", "") if digits.count(".") > 1 else digits)
