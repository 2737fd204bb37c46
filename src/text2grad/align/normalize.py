"""Looser spellings of a text that remember, character by character, where they came from.

A quotation is seldom a perfect copy: its case, white space, quotation marks, dashes or punctuation differ. Text and
quotation are therefore compared in three spellings, each looser than the one before:

`folded`    case, white space, compatibility characters, quotation marks and dashes are made alike
`worded`    only words, numbers and operators stay; what stands between two words is one space; accents are dropped
`squeezed`  `worded` without spaces, for text that lost its line breaks ("for free30 like it")
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from text2grad.schema import Range

_QUOTE_MARKS = "\"'`´‘’‚‛“”„‟′″‵‶«»‹›＂＇"
_DASHES = "-‐‑‒–—―−﹘﹣－"
_ASCII_UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LIKE = str.maketrans(
    _QUOTE_MARKS + _DASHES + _ASCII_UPPER,
    "'" * len(_QUOTE_MARKS) + "-" * len(_DASHES) + _ASCII_UPPER.lower(),
)

# Marks that compose with the character before them: accents, Hebrew and Arabic points, kana voicing, Hangul vowels.
_COMPOSING = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u093c\u09bc\u3099\u309a\u1160-\u11ff"
_UNEVEN = re.compile(rf"\s\s+|[^\S ]|[^\s{_COMPOSING}][{_COMPOSING}]+|[^\x00-\x7f]")

_SEPARATORS = re.compile(r"[\s.,;:!?'()\[\]{}|\\/*\-¡¿·•。、「」『』【】《》〈〉]+")
_NUMBER_MARKS = frozenset(".,:/-*")
_POINTED_NUMBER = re.compile(r"\d+\.\d+|\d+,\d{3}(?!\d)")

# Scripts written without spaces between words, and Hangul, whose particles cling to their noun.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_JOINER = "\u200d"  # holds an emoji sequence together
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_WORD = re.compile(rf"[{_UNSPACED}]|[^ {_UNSPACED}]+")


@dataclass(frozen=True)
class Spelling:
    """`text`, and for each of its characters the range [starts[i], ends[i]) of the original that it stands for."""

    text: str
    starts: list[int]
    ends: list[int]

    def origin(self, start: int, end: int) -> Range:
        """The range of the original that the characters start..end (at least one) stand for."""
        return self.starts[start], self.ends[end - 1]

    def words(self) -> list[Range]:
        """The ranges, in this spelling, of its words; each character of a script without spaces is a word."""
        return [match.span() for match in _WORD.finditer(self.text)]


@lru_cache(maxsize=32)
def folded(text: str) -> Spelling:
    """Case, white space, compatibility characters (NFKC), quotation marks and dashes made alike."""
    alike = text.translate(_LIKE)
    identity = Spelling(alike, list(range(len(text))), list(range(1, len(text) + 1)))
    return _rewritten(identity, _UNEVEN, _even)


@lru_cache(maxsize=32)
def worded(text: str) -> Spelling:
    """Words, numbers and operators only, one space between them, without accents."""
    fold = folded(text)
    plain = Spelling(fold.text.translate(_WITHOUT_ACCENT), fold.starts, fold.ends)
    return _stripped(_rewritten(plain, _SEPARATORS, _separator))


@lru_cache(maxsize=32)
def squeezed(text: str) -> Spelling:
    """`worded` with every space taken out."""
    return _rewritten(worded(text), re.compile(" +"), lambda match: "")


def splits_word(text: str, position: int) -> bool:
    """Whether a cut at `position` would part what reads as one: a word, a number, a character and its accent."""
    if not 0 < position < len(text):
        return False
    before, after = text[position - 1], text[position]
    if before == _JOINER or after == _JOINER or _is_mark(after):
        return True
    return (_is_word(before) and _is_word(after)) or _splits_number(text, position)


def _splits_number(text: str, position: int) -> bool:
    """Whether the cut lies beside the point of "1.5" or the comma of "1,000"."""
    first = max(0, position - 5)
    numbers = _POINTED_NUMBER.finditer(text[first : position + 5])
    return any(number.start() < position - first < number.end() for number in numbers)


def _is_word(char: str) -> bool:
    return (char.isalnum() or char == "_" or _is_mark(char)) and not _IS_UNSPACED.match(char)


def _is_mark(char: str) -> bool:
    """Accents, vowel signs: what belongs to the character before it."""
    return char >= "\u0300" and unicodedata.category(char).startswith("M")


def _rewritten(source: Spelling, pattern: re.Pattern[str], replace: Callable[[re.Match[str]], str]) -> Spelling:
    """Replace what `pattern` matches; every replacement character stands for the whole of what was matched."""
    pieces: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    done = 0
    for match in pattern.finditer(source.text):
        begin, end = match.span()
        replacement = replace(match)
        pieces += source.text[done:begin], replacement
        starts += source.starts[done:begin]
        ends += source.ends[done:begin]
        starts += [source.starts[begin]] * len(replacement)
        ends += [source.ends[end - 1]] * len(replacement)
        done = end
    pieces.append(source.text[done:])
    starts += source.starts[done:]
    ends += source.ends[done:]
    return Spelling("".join(pieces), starts, ends)


def _stripped(source: Spelling) -> Spelling:
    text = source.text.strip(" ")
    begin = len(source.text) - len(source.text.lstrip(" "))
    return Spelling(text, source.starts[begin : begin + len(text)], source.ends[begin : begin + len(text)])


def _even(match: re.Match[str]) -> str:
    piece = match[0]
    return " " if piece.isspace() else _composed(piece)


@lru_cache(maxsize=4096)
def _composed(piece: str) -> str:
    """One character with its marks: composed, compatible, lower case; nothing if it is invisible."""
    if unicodedata.category(piece[0]) == "Cf":
        return ""
    lower = unicodedata.normalize("NFKC", piece).casefold()
    return unicodedata.normalize("NFKC", lower).translate(_LIKE)


class _AccentRemover(dict[int, int]):
    """A table for `str.translate`, filled as characters come by; a character keeps its place."""

    def __missing__(self, code: int) -> int:
        decomposed = unicodedata.normalize("NFD", chr(code))
        accented = len(decomposed) > 1 and all("\u0300" <= mark <= "\u036f" for mark in decomposed[1:])
        self[code] = ord(decomposed[0]) if accented else code
        return self[code]


_WITHOUT_ACCENT = _AccentRemover()


def _separator(match: re.Match[str]) -> str:
    """What stays of the marks between two words: usually one space, but "1.5", "-5", "a / b" keep their meaning."""
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
    if core in ("/", "*") and spaced:
        return f" {core} "
    if core in ("*", "**") and run == core and before.isalnum() and after.isalnum():
        return f" {core} "
    return " "
