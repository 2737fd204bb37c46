"""Words of an English text as a programmatic critic sees them: where they stand, what they share with their inflections.

`read` cuts a text into sentences of words with character offsets. Two words say the same when their stems agree
("organised", "organisation") or, for numbers, when one of their values does ("€1,200", "1200", "1.2 thousand").
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from text2grad.critics.lexicon import (
    ABBREVIATIONS,
    FUNCTION_WORDS,
    GENERAL_WORDS,
    IRREGULAR_FORMS,
    NUMBER_WORDS,
    SCALES,
    TENS,
    UNITS,
)

_DIGITS = r"\d+(?:[.,:]\d+)*"
_SCALE = "|".join(name for name in SCALES if len(name) > 2)
_SPELT = f"(?:{'|'.join(TENS)})-(?:{'|'.join(UNITS)})|{'|'.join(sorted(NUMBER_WORDS, key=len, reverse=True))}"
_WORD = re.compile(
    rf"""[$£€¥]?{_DIGITS}(?:[ ](?:{_SCALE}|am|pm)\b|[^\W\d_]+|%)?  # €6.4 million, 12,600, 71st, 11:00, 1990s, 40%
    |(?:{_SPELT})\b(?:[ ](?:{_SCALE})\b)?                    # twenty-five, third, two million
    |(?:[^\W\d_]\.){{2,}}                                    # U.S., e.g.
    |[^\W_]+(?:['’][^\W_]+)*                                 # word, isn't, Seq2Seq
    """,
    re.VERBOSE | re.IGNORECASE,
)
_NUMBER = re.compile(rf"[$£€¥]?({_DIGITS})\s?([^\W\d_]*)")
_SENTENCE_END = re.compile(r"[.!?…。！？]+[\"'”’)\]*]*\s|\n")
_VOWEL = re.compile("[aeiouy]")


# Function words by their letters, content by their capitals.
_CAPITALS_TELL = frozenset({"US", "IT", "WHO", "May"})


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
    def key(self) -> str | float:
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
        return not self.text[1:].islower() if self.opens and len(self.text) > 1 else self.text[0].isupper()


class Text(NamedTuple):
    """A text and its words. `sentences` are ranges of word indices that tile the words; none is empty."""

    string: str
    words: tuple[Word, ...]
    sentences: tuple[range, ...]

    def between(self, index: int) -> str:
        """What stands between word `index` and the next one."""
        return self.string[self.words[index].end : self.words[index + 1].start]


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
    ends = [*starts[1:], len(words)]
    return Text(string, tuple(words), tuple(range(start, end) for start, end in zip(starts, ends, strict=False)))


def _ends_sentence(word: str, gap: str) -> bool:
    if gap == " ":
        return False
    end = _SENTENCE_END.search(gap)
    if end is None:
        return False
    return gap[0] != "." or "\n" in gap or (len(word) > 1 and word.lower() not in ABBREVIATIONS)


@lru_cache(maxsize=1 << 16)
def lexeme(text: str) -> Lexeme:
    """The lexeme of one word as `read` cuts it."""
    lowered = text.lower().replace("’", "'")
    values = _values(lowered)
    base = lowered.removesuffix("'s").replace(".", "")
    is_content = "." in text or text in _CAPITALS_TELL
    return Lexeme(
        stem=stem(base),
        values=values,
        is_function=not values and not is_content and (base in FUNCTION_WORDS or len(base) < 2),
        is_general=stem(base) in _GENERAL_STEMS,
    )


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
    if tens in NUMBER_WORDS and (not units or units in NUMBER_WORDS):
        return ((NUMBER_WORDS[tens] + NUMBER_WORDS.get(units, 0)) * SCALES.get(scale, 1),)
    return ()


def _parse_digits(digits: str) -> float:
    """"1,200" is 1200, "6.4" and "6:4" are 6.4, "1.200.000" is 1200000. Times compare like decimals: 6.30 is 6:30."""
    digits = digits.replace(",", "").replace(":", ".")
    return float(digits.replace(".", "") if digits.count(".") > 1 else digits)


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """What a lower-case word shares with its inflections and near derivations; not itself a word.

    Errs towards joining words that differ ("invest", "investor"): for a critic, a missed fault costs less than
    blame for an honest paraphrase.
    """
    word = IRREGULAR_FORMS.get(word, word)
    if len(word) <= 3:
        return word
    word = _strip_inflection(word)
    return _strip_derivation(word)


def _strip_inflection(word: str) -> str:
    if word.endswith(("ies", "ied")):
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for suffix in ("ing", "ed"):
        rest = word.removesuffix(suffix)
        if rest != word and len(rest) >= 3 and _VOWEL.search(rest):
            return rest
    return word


_DERIVATIONS = (
    "isation", "ization", "ational", "ation", "ition", "ment", "ness", "ance", "ence", "able", "ible",
    "ity", "ive", "ion", "ally", "ly", "al", "er", "or", "ist", "ism", "ful", "ous", "ant", "ent", "ise", "ize",
    "iser", "izer", "ate", "at", "is", "iz", "e", "y", "i",
)  # fmt: skip


def _strip_derivation(word: str) -> str:
    for suffix in _DERIVATIONS:
        if word.endswith(suffix) and len(word) - len(suffix) >= 4:
            word = word[: -len(suffix)]
            break
    if len(word) > 3 and word[-1] in "eyi":
        word = word[:-1]
    if word[-1] == word[-2]:
        word = word[:-1]
    return word.replace("our", "or") if len(word) > 4 else word


_GENERAL_STEMS = frozenset(stem(word) for word in GENERAL_WORDS)
