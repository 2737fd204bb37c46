"""Where every sampled token lies in the text that its ids decode to.

The tokens tile the bytes of that text. A token's range covers every character that any of its bytes belongs to, so
tokens that share a character (the four bytes of an emoji, say) overlap in it. Nothing is ever encoded: all of this
holds for ids that the tokenizer would never produce.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from text2grad.align.pieces import characters_begun, vocabulary
from text2grad.schema import Range

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def decode(ids: Sequence[int], tokenizer: PreTrainedTokenizerBase) -> str:
    """The text of the ids: special tokens skipped, spaces as they are, invalid UTF-8 replaced by U+FFFD.

    The same as `tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)`, but that an id
    outside the vocabulary is an error.
    """
    words = vocabulary(tokenizer)
    tiles = list(words.tiles(ids))
    if not words.is_plain(ids):
        for index, tile in words.changes(ids).items():
            tiles[index] = tile
    return b"".join(tiles).decode()


def offsets(ids: Sequence[int], tokenizer: PreTrainedTokenizerBase) -> list[Range]:
    """One range of characters (start, end exclusive) of `decode(ids, tokenizer)` per id; starts never decrease.

    A token that adds nothing (a special one, or a space that is stripped from the start) has zero width; inside a
    character, it lies at that character's start.
    """
    words = vocabulary(tokenizer)
    begun: Sequence[int] = words.begun(ids)
    if words.is_plain(ids):
        return _tile(begun)
    changes = words.changes(ids)
    if changes:
        begun = [characters_begun(changes[i]) if i in changes else usual for i, usual in enumerate(begun)]
    ranges = _tile(begun)
    for index in words.continuing(ids, changes):
        start, end = ranges[index]
        ranges[index] = (start - 1, end)
        while ranges[index - 1][0] == start:  # a token without width that stands inside the character
            index -= 1
            ranges[index] = (start - 1, start - 1)
    return ranges


def _tile(widths: Iterable[int]) -> list[Range]:
    return list(pairwise(accumulate(widths, initial=0)))


def overlapping(start: int, end: int, offsets: Sequence[Range]) -> list[int]:
    """Indices of the tokens that share a character with [start, end); `offsets` as returned by `offsets`.

    Tokens of zero width share none. Takes O(log tokens + result), because starts never decrease.
    """
    if start >= end:
        return []
    first = bisect_left(offsets, (start,))
    if first and offsets[first - 1][1] > start:  # at most one token reaches in from before
        first -= 1
    found = []
    for index in range(first, len(offsets)):
        token_start, token_end = offsets[index]
        if token_start >= end:
            break
        if token_start < token_end:
            found.append(index)
    return found
