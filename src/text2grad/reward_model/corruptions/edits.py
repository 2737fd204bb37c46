"""Edits of a faithful text, and the text that they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from text2grad.schema import Range

MARGIN = 2  # characters between two edits, so that their spans stay apart


@dataclass(frozen=True)
class Edit:
    """`text[start:end]` becomes `written`: an insertion if the range is empty, an omission if `written` is.

    kind: which rule made it, as `name` or `added phrase`; the critique's words depend on it.
    """

    start: int
    end: int
    written: str
    kind: str

    def overlaps(self, other: Edit) -> bool:
        """Whether the two ranges are closer than MARGIN."""
        return self.start < other.end + MARGIN and other.start < self.end + MARGIN


def insertion(place: int, written: str, kind: str) -> Edit:
    """Return the edit that inserts words at this place."""
    return Edit(place, place, written, kind)


def apply_edits(text: str, edits: Sequence[Edit]) -> tuple[str, list[Range]]:
    """Return the new text, and where each edit's words stand in it, without white space; an omission's range is empty.

    edits: in the order of the text, without overlaps.
    """
    pieces: list[str] = []
    ranges: list[Range] = []
    position = length = 0
    for edit in edits:
        kept = text[position : edit.start]
        length += len(kept)
        start = length + len(edit.written) - len(edit.written.lstrip())
        ranges.append((start, start + len(edit.written.strip())))
        pieces += [kept, edit.written]
        length += len(edit.written)
        position = edit.end
    return "".join([*pieces, text[position:]]), ranges
