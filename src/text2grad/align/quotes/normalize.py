"""Text normalisation with offsets into the original text.

Quotations are seldom exact copies: case, white space, quotation marks, dashes or punctuation differ. Text and quotation
are therefore compared at three levels of normalisation, each looser than the one before:

`fold_typography`   case, white space, compatibility characters, quotation marks and dashes are unified
`fold_punctuation`  only words, numbers and operators stay, one space between two words; accents are dropped
`fold_spaces`       spaces are removed too, for text that lost its line breaks ("for free30 like it")
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from string import ascii_lowercase, ascii_uppercase

from text2grad.schema import Range

OPENING_MARKS = "\"'`“‘«„"
_QUOTE_MARKS = "\"'`´‘’‚‛“”„‟′″‵‶«»‹›＂＇"
_DASHES = "-‐‑‒–—―−﹘﹣－"
_UNIFORM = str.maketrans(ascii_uppercase, ascii_lowercase)
_UNIFORM |= dict.fromkeys(map(ord, _QUOTE_MARKS), ord("'")) | dict.fromkeys(map(ord, _DASHES), ord("-"))

# Combining marks: accents, Hebrew and Arabic points, kana voicing, Hangul vowels.
_COMPOSING = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u093c\u09bc\u3099\u309a\u1160-\u11ff"
_VARIABLE = re.compile(rf"\s\s+|[^\S ]|[^\s{_COMPOSING}][{_COMPOSING}]+|[^\x00-\x7f]")

_SEPARATORS = re.compile(r"[\s.,;:!?'()\[\]{}|\\/*\-¡¿·•。、「」『』【】《》〈〉]+")
_NUMBER_MARKS = frozenset(".,:/-*")
_POINTED_NUMBER = re.compile(r"\d+\.\d+|\d+,\d{3}(?!\d)")

# Scripts written without spaces between words, and Hangul, whose particles follow their noun without a space.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_JOINER = "\u200d"  # joins an emoji sequence
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_WORD = re.compile(rf"[{_UNSPACED}]|[^ {_UNSPACED}]+")


@dataclass(frozen=True)
class NormalizedText:
    """A normalised text; its character i comes from the range [starts[i], ends[i]) of the original."""

    text: str
    starts: list[int]
    ends: list[int]

    def original_range(self, start: int, end: int) -> Range:
        """Return the range of the original from which the characters start..end (at least one) come."""
        return self.starts[start], self.ends[end - 1]

    def word_ranges(self) -> list[Range]:
        """Return the ranges of the words in `text`; each character of a script without spaces is a word."""
        return [match.span() for match in _WORD.finditer(self.text)]


@lru_cache(maxsize=32)
def fold_typography(text: str) -> NormalizedText:
    """Unify case, white space, compatibility characters (NFKC), quotation marks and dashes."""
    translated = text.translate(_UNIFORM)
    same_length = NormalizedText(translated, list(range(len(text))), list(range(1, len(text) + 1)))
    return _substitute(same_length, _VARIABLE, lambda match: " " if match[0].isspace() else _compose(match[0]))


@lru_cache(maxsize=32)
def fold_punctuation(text: str) -> NormalizedText:
    """Keep words, numbers and operators only, one space between them, without accents."""
    folded = fold_typography(text)
    plain = NormalizedText(folded.text.translate(_WITHOUT_ACCENT), folded.starts, folded.ends)
    return _strip_spaces(_substitute(plain, _SEPARATORS, _fold_separator))


@lru_cache(maxsize=32)
def fold_spaces(text: str) -> NormalizedText:
    """Apply `fold_punctuation` and remove every space."""
    return _substitute(fold_punctuation(text), re.compile(" +"), lambda match: "")


def splits_word(text: str, position: int) -> bool:
    """Whether `position` is inside a word, a number, or a character with its combining marks."""
    if not 0 < position < len(text):
        return False
    before, after = text[position - 1], text[position]
    if before == _JOINER or after == _JOINER or _is_mark(after):
        return True
    return (_is_word(before) and _is_word(after)) or _splits_number(text, position)


def splits_words(text: str, bounds: Range) -> bool:
    """Whether a range starts or ends inside a word."""
    return any(splits_word(text, position) for position in bounds)


def _splits_number(text: str, position: int) -> bool:
    """Whether the position is beside the point of "1.5" or the comma of "1,000"."""
    first = max(0, position - 5)
    numbers = _POINTED_NUMBER.finditer(text[first : position + 5])
    return any(number.start() < position - first < number.end() for number in numbers)


def _is_word(char: str) -> bool:
    return (char.isalnum() or char == "_" or _is_mark(char)) and not _IS_UNSPACED.match(char)


def _is_mark(char: str) -> bool:
    """Whether a character is an accent, a vowel sign or another combining mark."""
    return char >= "\u0300" and unicodedata.category(char).startswith("M")


def _substitute(
    source: NormalizedText, pattern: re.Pattern[str], replace: Callable[[re.Match[str]], str]
) -> NormalizedText:
    """Replace the matches of `pattern`; every replacement character comes from the whole match."""
    pieces: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    done = 0
    for match in pattern.finditer(source.text):
        begin, end = match.span()
        replacement = replace(match)
        pieces += source.text[done:begin], replacement
        starts += source.starts[done:begin] + [source.starts[begin]] * len(replacement)
        ends += source.ends[done:begin] + [source.ends[end - 1]] * len(replacement)
        done = end
    text = "".join(pieces) + source.text[done:]
    return NormalizedText(text, starts + source.starts[done:], ends + source.ends[done:])


def _strip_spaces(source: NormalizedText) -> NormalizedText:
    text = source.text.strip(" ")
    begin = len(source.text) - len(source.text.lstrip(" "))
    return NormalizedText(text, source.starts[begin : begin + len(text)], source.ends[begin : begin + len(text)])


@lru_cache(maxsize=4096)
def _compose(piece: str) -> str:
    """Normalise one character with its combining marks (NFKC, lower case); nothing if it is invisible."""
    if unicodedata.category(piece[0]) == "Cf":
        return ""
    lower = unicodedata.normalize("NFKC", piece).casefold()
    return unicodedata.normalize("NFKC", lower).translate(_UNIFORM)


class _AccentRemover(dict[int, int]):
    """A table for `str.translate` that fills itself; it maps one character to one character."""

    def __missing__(self, code: int) -> int:
        decomposed = unicodedata.normalize("NFD", chr(code))
        accented = len(decomposed) > 1 and all("\u0300" <= mark <= "\u036f" for mark in decomposed[1:])
        self[code] = ord(decomposed[0]) if accented else code
        return self[code]


_WITHOUT_ACCENT = _AccentRemover()


def _fold_separator(match: re.Match[str]) -> str:
    """Replace the punctuation between two words by one space, except where it has meaning: "1.5", "-5", "a / b"."""
    run, core = match[0], match[0].strip()
    before = match.string[match.start() - 1] if match.start() else " "
    after = match.string[match.end()] if match.end() < len(match.string) else " "
    spaced = run[0].isspace() and run[-1].isspace()
    if run == "'" and before.isalpha() and after.isalpha():
        return ""
    if before.isdigit() and after.isdigit() and core in _NUMBER_MARKS:
        return core
    if after.isdigit() and run.endswith("-") and not (run == "-" and before.isalnum()):
        return " -"
    between_words = run == core and before.isalnum() and after.isalnum()
    is_operator = (spaced and core in ("/", "*")) or (between_words and core in ("*", "**"))
    return f" {core} " if is_operator else " "
