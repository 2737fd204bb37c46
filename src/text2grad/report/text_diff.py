"""The words in which two texts differ."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

Segment = tuple[str, bool]  # text, and whether the other text lacks it
MAX_WORDS = 3_000  # of both texts together; longer ones are not compared

_WORDS = re.compile(r"\w+|\s+|[^\w\s]")


def diff_words(one: str, other: str) -> tuple[list[Segment], list[Segment]]:
    """Return the segments of both texts, each marked if the other text does not have it there."""
    first, second = _WORDS.findall(one), _WORDS.findall(other)
    if len(first) + len(second) > MAX_WORDS:
        return [(one, False)], [(other, False)]
    left: list[Segment] = []
    right: list[Segment] = []
    for kind, a, b, c, d in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        for segments, words in ((left, first[a:b]), (right, second[c:d])):
            if words:
                segments.append(("".join(words), kind != "equal"))
    return left, right
