"""A critique in plain sentences, and for each remark the range of the critique that makes it."""

from __future__ import annotations

from collections.abc import Sequence

from text2grad.critics.rules.marks import Kind, Mark
from text2grad.schema import Range

# What the critique says of the marks of a kind, in this order, and the reason each span carries.
REMARKS: dict[Kind, tuple[str, str]] = {
    "told": ("It rightly reports", "a key fact of the source"),
    "number": ("The source does not give the number", "number that is not in the source"),
    "name": ("The source does not name", "name that is not in the source"),
    "word": ("The source does not support", "word that the source does not support"),
    "filler": ("It talks about the text instead of telling what it says in", "talk about the text"),
    "copied": ("It copies the source instead of summing it up in", "copied from the source"),
    "repeated": ("It repeats itself in", "said before"),
    "listed": ("It strings words together instead of making a sentence in", "no sentence"),
    "broken": ("The grammar breaks down in", "broken grammar"),
    "padding": ("It is too long; it should have ended before", "beyond the length of a summary"),
    "layout": ("It is not running text; it has", "line break or list mark"),
    "unfinished": ("It breaks off after", "unfinished sentence"),
}
_LINE_BREAKS = "line breaks or list marks"
_NO_REMARK = "There is nothing to praise and nothing to blame."
_LONGEST_QUOTE = 80


class Critique:
    """Grows sentence by sentence; every method returns the ranges of the text where its items are quoted or named."""

    def __init__(self) -> None:
        self._text = ""

    @property
    def text(self) -> str:
        return self._text or _NO_REMARK

    def mark(self, kind: Kind, string: str, marks: Sequence[Mark]) -> list[Range]:
        """One sentence about all marks of a kind, quoting each."""
        opening, _ = REMARKS[kind]
        if kind == "layout":
            return self._say(opening, [_LINE_BREAKS] * len(marks), quote="")
        return self._say(opening, [_shorten(string[mark.start : mark.end]) for mark in marks])

    def miss(self, facts: Sequence[str]) -> list[Range]:
        """One sentence that names the facts left out."""
        return self._say("It leaves out what the source says about", facts)

    def lack(self, what: str) -> Range:
        """One sentence that names something other than a fact."""
        return self._say("It lacks", [what], quote="")[0]

    def _say(self, opening: str, items: Sequence[str], quote: str = '"') -> list[Range]:
        distinct = list(dict.fromkeys(items))
        if not distinct:
            return []
        sentence = f"{self._text} {opening}" if self._text else opening
        places: dict[str, Range] = {}
        for number, item in enumerate(distinct):
            joint = " " if number == 0 else " and " if number == len(distinct) - 1 else ", "
            start = len(sentence) + len(joint) + len(quote)
            places[item] = (start, start + len(item))
            sentence += f"{joint}{quote}{item}{quote}"
        self._text = f"{sentence}."
        return [places[item] for item in items]


def _shorten(quote: str) -> str:
    return quote if len(quote) <= _LONGEST_QUOTE else f"{quote[: _LONGEST_QUOTE - 1]}…"
