"""Character offsets of sampled tokens in the text that their ids decode to.

The tokens tile the bytes of that text. A token's range covers every character that any of its bytes belongs to, so
tokens that share a character (such as the four bytes of an emoji) overlap in it. Text is never encoded, so this also
holds for ids that the tokenizer would never produce.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from text2grad.align.vocabulary import count_chars, get_vocabulary
from text2grad.schema import Range

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def decode(ids: Sequence[int], tokenizer: PreTrainedTokenizerBase) -> str:
    """Decode ids: special tokens skipped, spaces kept, invalid UTF-8 replaced by U+FFFD.

    The same as `tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)`; ids beyond the
    vocabulary decode to nothing, and negative ones are an error.
    """
    vocabulary = get_vocabulary(tokenizer)
    parts = list(vocabulary.token_bytes(ids))
    if not vocabulary.is_context_free(ids):
        for index, data in vocabulary.overrides(ids).items():
            parts[index] = data
    return b"".join(parts).decode()


def offsets(ids: Sequence[int], tokenizer: PreTrainedTokenizerBase) -> list[Range]:
    """Return one range of characters (start, exclusive end) of `decode(ids, tokenizer)` per id; starts never decrease.

    A token that adds nothing (a special one, or a space that is stripped from the start) has zero width; between the
    tokens of one character, its range is at that character's start.
    """
    vocabulary = get_vocabulary(tokenizer)
    widths: Sequence[int] = vocabulary.char_counts(ids)
    if vocabulary.is_context_free(ids):
        return _tile(widths)
    overrides = vocabulary.overrides(ids)
    if overrides:
        widths = [count_chars(overrides[i]) if i in overrides else width for i, width in enumerate(widths)]
    ranges = _tile(widths)
    for index in vocabulary.starting_inside_char(ids, overrides):
        start, end = ranges[index]
        ranges[index] = (start - 1, end)
        while ranges[index - 1][0] == start:  # a token without width inside the character
            index -= 1
            ranges[index] = (start - 1, start - 1)
    return ranges


def _tile(widths: Iterable[int]) -> list[Range]:
    return list(pairwise(accumulate(widths, initial=0)))


def overlapping(start: int, end: int, offsets: Sequence[Range]) -> list[int]:
    """Return the indices of the tokens that share a character with [start, end), given the result of `offsets`.

    Tokens of zero width share none. Takes O(log(tokens) + result), because starts never decrease.
    """
    if start >= end:
        return []
    first = bisect_left(offsets, (start,))
    if first and offsets[first - 1][1] > start:  # at most one earlier token reaches into the range
        first -= 1
    found = []
    for index in range(first, len(offsets)):
        token_start, token_end = offsets[index]
        if token_start >= end:
            break
        if token_start < token_end:
            found.append(index)
    return found
