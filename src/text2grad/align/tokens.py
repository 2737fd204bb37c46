"""Where every sampled token lies in the text that its ids decode to.

The tokens tile the bytes of that text. A token's range covers every character that any of its bytes belongs to, so
tokens that share a character (the four bytes of an emoji, say) overlap in it. Nothing is ever encoded: all of it holds
for ids that the tokenizer would never produce.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby, pairwise
from typing import TYPE_CHECKING, cast

from text2grad.align.pieces import reading
from text2grad.schema import Range

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def decode(ids: Sequence[int], tokenizer: PreTrainedTokenizerBase) -> str:
    """The text of the ids: special tokens skipped, spaces as they are, invalid UTF-8 replaced by U+FFFD.

    The same as `tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)`, but that an id
    outside the vocabulary is an error.
    """
    return decode_with_offsets(ids, tokenizer)[0]


def offsets(ids: Sequence[int], tokenizer: PreTrainedTokenizerBase) -> list[Range]:
    """One character range (start, end exclusive) of `decode(ids, tokenizer)` per id.

    Starts never decrease. Special tokens have zero width, at the start of the character that they interrupt if they
    do; so has a token all of whose text is stripped from the start.
    """
    return decode_with_offsets(ids, tokenizer)[1]


def decode_with_offsets(ids: Sequence[int], tokenizer: PreTrainedTokenizerBase) -> tuple[str, list[Range]]:
    """`decode` and `offsets` in one pass."""
    how = reading(tokenizer)
    texts: list[str] = []
    ranges: list[Range] = []
    position = 0
    for kind, group in groupby(how.pieces(ids), type):
        if kind is str:
            whole = cast(list[str], list(group))
            text = "".join(whole)
            ranges.extend(pairwise(accumulate(map(len, whole), initial=position)))
        else:
            parts = cast(list[bytes], list(group))
            characters = how.characters(b"".join(parts))
            text = "".join(character for character, _ in characters)
            ranges.extend(_share(parts, [width for _, width in characters], position))
        texts.append(text)
        position += len(text)
    return _strip_start("".join(texts), ranges, how.strips)


def _share(parts: list[bytes], widths: list[int], position: int) -> Iterator[Range]:
    """Ranges of tokens whose bytes make up the characters from `position` on, each of which takes `widths` bytes."""
    character_at = [position + index for index, width in enumerate(widths) for _ in range(width)]
    character_at.append(position + len(widths))
    byte = 0
    for part in parts:
        start = character_at[byte]
        byte += len(part)
        yield (start, character_at[byte - 1] + 1) if part else (start, start)


def _strip_start(text: str, ranges: list[Range], strips: Sequence[tuple[str, int]]) -> tuple[str, list[Range]]:
    for character, at_most in strips:
        head = text[:at_most]
        cut = len(head) - len(head.lstrip(character))
        text = text[cut:]
        ranges = [(max(0, start - cut), max(0, end - cut)) for start, end in ranges]
    return text, ranges


def overlapping(start: int, end: int, offsets: Sequence[Range]) -> list[int]:
    """Indices of the tokens that share a character with [start, end); `offsets` as returned by `offsets`.

    Tokens of zero width share none. Takes O(log tokens + result), because starts never decrease.
    """
    if start >= end:
        return []
    first = bisect_left(offsets, (start,))
    while first and (offsets[first - 1][1] > start or offsets[first - 1][0] == offsets[first - 1][1]):
        first -= 1
    last = bisect_left(offsets, (end,), lo=first)
    return [index for index in range(first, last) if offsets[index][0] < offsets[index][1]]
