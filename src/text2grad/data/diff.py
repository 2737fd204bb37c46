"""Which tokens of a text a correction replaced, deleted or inserted."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable

from text2grad.schema import Range

WORD = re.compile(r"\S+")


def diff_tokens(
    before: str, after: str, token: re.Pattern[str], normalize: Callable[[str], str] = str
) -> tuple[list[Range], list[Range]]:
    """Return the ranges of `before` that `after` replaced or deleted, and the ranges of `after` that it only inserted.

    token: matches one unit of comparison; what it does not match is ignored. normalize: applied before comparing.
    A range extends from the first to the last token of a change.
    """
    old, new = list(token.finditer(before)), list(token.finditer(after))
    old_keys, new_keys = ([normalize(match[0]) for match in matches] for matches in (old, new))
    changed: list[Range] = []
    inserted: list[Range] = []
    matcher = difflib.SequenceMatcher(None, old_keys, new_keys, autojunk=False)
    for operation, start, end, new_start, new_end in matcher.get_opcodes():
        if operation in ("replace", "delete"):
            changed.append((old[start].start(), old[end - 1].end()))
        elif operation == "insert":
            inserted.append((new[new_start].start(), new[new_end - 1].end()))
    return changed, inserted


def corrected_part(before: str, after: str, bounds: Range) -> str | None:
    """Return what `after` has in the place of before[start:end]: "" where it was deleted, None where that is not clear.

    It is clear where the words next to the part are those next to it in `after` too, or where both texts begin or end
    there, and something changed. Words are separated by white space and compared without case.
    """
    start, end = bounds
    old, new, kept = _align_words(before, after)
    inside = [i for i, word in enumerate(old) if word.start() < end and start < word.end()]
    if not inside or inside[0] - 1 not in kept or inside[-1] + 1 not in kept:
        return None
    theirs = new[kept[inside[0] - 1] + 1 : kept[inside[-1] + 1]]
    part = after[theirs[0].start() : theirs[-1].end()] if theirs else ""
    head, tail = before[old[inside[0]].start() : start], before[end : old[inside[-1]].end()]
    if not part.startswith(head) or not part[len(head) :].endswith(tail):
        return None
    part = part[len(head) : len(part) - len(tail)]
    return None if part.lower() == before[start:end].lower() else part


def insertion_point(before: str, after: str, bounds: Range) -> tuple[int, str]:
    """Return where after[start:end], words that `before` lacks, belongs in `before`, and the words with their space."""
    words = " ".join(after[slice(*bounds)].split())
    old, new, kept = _align_words(before, after)
    preceding = [ours for ours, theirs in kept.items() if 0 <= theirs < len(new) and new[theirs].end() <= bounds[0]]
    if not preceding:
        return 0, f"{words} " if old else words
    return old[max(preceding)].end(), f" {words}"


def _align_words(before: str, after: str) -> tuple[list[re.Match[str]], list[re.Match[str]], dict[int, int]]:
    """Return the words of both texts, and which of them are the same; so are their ends, -1 and the number of words."""
    old, new = list(WORD.finditer(before)), list(WORD.finditer(after))
    ours, theirs = ([word[0].lower() for word in words] for words in (old, new))
    blocks = difflib.SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks()
    kept = {block.a + i: block.b + i for block in blocks for i in range(block.size)}
    return old, new, kept | {-1: -1, len(old): len(new)}
