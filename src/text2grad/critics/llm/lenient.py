"""JSON as language models write it: single quotes, unescaped quotes, trailing commas, cut off in the middle.

Nothing is made up: a value that is not finished is left out, and what has no readable structure is an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

# What must follow a quotation mark for it to close a string, where marks inside strings are not escaped.
# Keys have none inside: one that is followed by anything but a colon shows that a string before it was closed wrongly.
_AFTER = {
    "key": re.compile(""),
    "member": re.compile(r"\s*(?:\}|,\s*[\"'}])"),
    "item": re.compile(r"\s*(?:\]|,\s*[\"'{\[\]])"),
}
_LITERAL = re.compile(r"(true|false|null|True|False|None)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_WORDS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_DEEPEST = 20

Place = Literal["key", "member", "item"]


class NotJsonError(ValueError):
    """The text has no structure that could be read without guessing."""


@dataclass(frozen=True)
class Read:
    """A value, where it ends in the text, and whether the text was cut off before the value was finished."""

    value: Any
    end: int
    cut: bool


def read_object(text: str, start: int) -> Read:
    """The object whose brace is text[start]; first with quotation marks taken strictly, then leniently."""
    try:
        return _Reader(text, strict_marks=True).object(start, depth=0)
    except NotJsonError:
        return _Reader(text, strict_marks=False).object(start, depth=0)


class _Reader:
    def __init__(self, text: str, strict_marks: bool) -> None:
        self.text = text
        self.strict_marks = strict_marks

    def object(self, start: int, depth: int) -> Read:
        members: dict[str, Any] = {}
        at = self._skip(start + 1)
        while at < len(self.text):
            if self.text[at] == "}":
                return Read(members, at + 1, cut=False)
            key = self._string(at, "key")
            colon = self._skip(key.end)
            if key.cut or colon == len(self.text):
                break
            if self.text[colon] != ":":
                raise NotJsonError(f'no ":" after the key at character {at}')
            value = self._value(self._skip(colon + 1), "member", depth)
            if not value.cut or isinstance(value.value, dict | list):
                members[key.value] = value.value
            if value.cut:
                break
            at = self._next(value.end, "}")
        return Read(members, len(self.text), cut=True)

    def _array(self, start: int, depth: int) -> Read:
        items: list[Any] = []
        at = self._skip(start + 1)
        while at < len(self.text):
            if self.text[at] == "]":
                return Read(items, at + 1, cut=False)
            item = self._value(at, "item", depth)
            if not item.cut or isinstance(item.value, dict | list):
                items.append(item.value)
            if item.cut:
                break
            at = self._next(item.end, "]")
        return Read(items, len(self.text), cut=True)

    def _value(self, at: int, place: Place, depth: int) -> Read:
        if at == len(self.text):
            return Read(None, at, cut=True)
        if depth == _DEEPEST:
            raise NotJsonError(f"nested more than {_DEEPEST} deep")
        if self.text[at] == "{":
            return self.object(at, depth + 1)
        if self.text[at] == "[":
            return self._array(at, depth + 1)
        if self.text[at] in "\"'":
            return self._string(at, place)
        literal = _LITERAL.match(self.text, at)
        if literal is None:
            raise NotJsonError(f"no value at character {at}")
        # A number at the very end may have lost digits.
        value = _WORDS[literal[0]] if literal[1] else float(literal[0])
        return Read(value, literal.end(), cut=literal.end() == len(self.text) and not literal[1])

    def _string(self, start: int, place: Place) -> Read:
        mark = self.text[start]
        if mark not in "\"'":
            raise NotJsonError(f"no string at character {start}")
        letters: list[str] = []
        at = start + 1
        while at < len(self.text):
            letter = self.text[at]
            if letter == "\\":
                unescaped, at = self._escape(at)
                letters.append(unescaped)
            elif letter == mark and (self.strict_marks or _AFTER[place].match(self.text, at + 1)):
                return Read("".join(letters), at + 1, cut=False)
            else:
                letters.append(letter)
                at += 1
        return Read("".join(letters), at, cut=True)

    def _escape(self, at: int) -> tuple[str, int]:
        kind = self.text[at + 1 : at + 2]
        if kind == "u":
            return self._unicode(at)
        return _ESCAPES.get(kind, kind), at + 2

    def _unicode(self, at: int) -> tuple[str, int]:
        """One code point; a pair of surrogates is one."""
        units = re.compile(r"(?:\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[0-9a-fA-F]{4}")
        found = units.match(self.text, at)
        if found is None:
            return "", at + 6  # cut inside the escape, or no escape at all
        codes = bytes.fromhex(found[0].replace("\\u", ""))
        return codes.decode("utf-16-be", errors="replace"), found.end()

    def _next(self, at: int, closing: str) -> int:
        """The place after the comma, or of the closing bracket."""
        at = self._skip(at)
        if at == len(self.text) or self.text[at] == closing:
            return at
        if self.text[at] != ",":
            raise NotJsonError(f'neither "," nor "{closing}" at character {at}')
        return self._skip(at + 1)

    def _skip(self, at: int) -> int:
        while at < len(self.text) and self.text[at].isspace():
            at += 1
        return at
