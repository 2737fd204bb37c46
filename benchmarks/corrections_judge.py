"""Whether a correction agrees with what a person made of the answer, by a word alignment of both."""

from __future__ import annotations

import difflib
import re

MORE_WORDS = 2  # of the answer after the correction that the person's text has to have too
_NOT_WORD = re.compile(r"[^\w£$%€]")


def normalized_words(text: str) -> list[str]:
    """Return the words of a text in lower case and without punctuation."""
    return [word for word in (_NOT_WORD.sub("", part.lower()) for part in text.split()) if word]


def align_words(before: list[str], after: list[str]) -> dict[int, int]:
    """Map the indices of the words of `before` that `after` keeps to their indices there."""
    blocks = difflib.SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
    return {block.a + i: block.b + i for block in blocks for i in range(block.size)}


def agrees(answer: str, start: int, end: int, replacement: str, corrected: str) -> bool:
    """Whether the corrected text goes on, after the last word before the correction, as the correction says.

    That is with the words of the replacement and MORE_WORDS words of the answer after it, or the end of both texts.
    """
    before, new, after = map(normalized_words, (answer[:start], replacement, answer[end:]))
    theirs = normalized_words(corrected)
    kept = align_words(normalized_words(answer), theirs)
    if before and len(before) - 1 not in kept:
        return False
    at = kept[len(before) - 1] + 1 if before else 0
    expected = new + after[:MORE_WORDS]
    if theirs[at : at + len(expected)] != expected:
        return False
    return len(after) >= MORE_WORDS or at + len(expected) == len(theirs)


def has_at_place(answer: str, start: int, end: int, replacement: str, corrected: str) -> bool:
    """Whether the corrected text has the words of the replacement, but for an article at their start, at that place.

    That is between the words that it keeps nearest to the correction on both sides.
    """
    ours, theirs, new = map(normalized_words, (answer, corrected, replacement))
    kept = align_words(ours, theirs)
    first = len(normalized_words(answer[:start]))
    last = len(ours) - len(normalized_words(answer[end:]))
    left = max((kept[i] for i in range(first) if i in kept), default=-1)
    right = min((kept[i] for i in range(last, len(ours)) if i in kept), default=len(theirs))
    wanted = new[1:] if new[:1] and new[0] in ("a", "an", "the") else new
    place = theirs[left + 1 : right]
    return bool(wanted) and any(place[i : i + len(wanted)] == wanted for i in range(len(place)))


def agrees_apart_from_other_changes(answer: str, start: int, end: int, corrected: str) -> bool:
    """Whether the corrected text lacks the removed words and joins what it keeps of the words around them.

    Unlike `agrees`, words next to the removal that the person changed as well are skipped: of "Former captain John
    Terry helped", "John" is rightly removed if the person made "Terry helped" of it, for another reason.
    """
    ours, theirs = normalized_words(answer), normalized_words(corrected)
    first = len(normalized_words(answer[:start]))
    last = len(ours) - len(normalized_words(answer[end:]))
    kept = align_words(ours, theirs)
    if not lacks_words(answer, start, end, corrected):
        return False
    left = max((kept[i] for i in range(first) if i in kept), default=-1)
    right = [kept[i] for i in range(last, len(ours)) if i in kept][:MORE_WORDS]
    return bool(right) and right == list(range(left + 1, left + 1 + len(right)))


def lacks_words(answer: str, start: int, end: int, corrected: str) -> bool:
    """Whether the corrected text keeps none of the words that are removed."""
    ours = normalized_words(answer)
    first = len(normalized_words(answer[:start]))
    last = len(ours) - len(normalized_words(answer[end:]))
    kept = align_words(ours, normalized_words(corrected))
    return not any(i in kept for i in range(first, last))
