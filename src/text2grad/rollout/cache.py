"""A key-value cache with room to grow.

The library's own appends by concatenation: every token copies the whole cache, and tensors of ever new sizes leave the
C allocator's heap full of holes (9 GB resident for 48 answers of 56 tokens, where the cache itself has 0.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import Cache, DynamicLayer, StaticLayer

BLOCK = 64  # tokens of room that are added when there is none left


class PreallocatedLayer(DynamicLayer):  # type: ignore[no-untyped-call]
    """Appending writes into room that is already there; a new block is copied to once every BLOCK tokens."""

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        keys = append(cast(Tensor, self.keys), key_states)
        values = append(cast(Tensor, self.values), value_states)
        self.keys, self.values = keys, values
        return keys, values


class FixedLayer(StaticLayer):  # type: ignore[no-untyped-call]
    """Stays where it is, and takes one token at a time; whoever owns the cache says where, once for all layers.

    Keys are kept in the values' precision: under autocast the library's are float32.
    """

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        keys, values = cast(Tensor, self.keys), cast(Tensor, self.values)
        place = cast(Tensor, self.cumulative_length).view(1)
        keys.index_copy_(2, place, key_states.to(values.dtype))
        values.index_copy_(2, place, value_states)
        return keys, values


def append(stored: Tensor, new: Tensor) -> Tensor:
    """`stored` (empty at first) and `new`, (batch, heads, tokens, width) each, one after the other along the tokens.

    The result is a view of a buffer with room behind it; where `stored` is such a view, `new` is written there.
    """
    batch, heads, tokens, width = new.shape
    before = stored.shape[-2] if stored.numel() else 0
    # The stride between heads tells how many tokens the buffer behind a view can hold.
    capacity = stored.stride(1) // width if before else 0
    if capacity < before + tokens:
        buffer = new.new_empty(batch, heads, before + tokens + BLOCK, width)
        if before:
            buffer[..., :before, :] = stored
    else:
        shape = (batch, heads, capacity, width)
        buffer = stored.as_strided(shape, (heads * capacity * width, capacity * width, width, 1))
    buffer[..., before : before + tokens, :] = new
    return buffer[..., : before + tokens, :]


def preallocated_cache(config: Any) -> DynamicCache:
    """A cache for a model of this configuration; layers of other kinds (sliding windows, say) stay the library's."""
    make: Any = PreallocatedLayer
    cache = DynamicCache(config=config)
    cache.layers = [make() if type(layer) is DynamicLayer else layer for layer in cache.layers]
    return cache


def fixed_cache(states: Sequence[tuple[Tensor, Tensor]], rows: Tensor, length: int, place: Tensor) -> Cache:
    """A cache of fixed places for `length` tokens, the first of them filled with these rows of the states.

    states: keys and values of each layer, (batch, heads, tokens, width) each. rows: (rows,), of the batch, also more
    than once. place: (), where the next token is written; to be moved on by the caller.
    """
    layers = []
    for keys, values in states:
        layer: Any = FixedLayer(max_cache_len=length)
        chosen_keys, chosen_values = keys.to(values.dtype)[rows], values[rows]
        layer.lazy_initialization(chosen_keys, chosen_values)
        filled = keys.shape[2]
        layer.keys[:, :, :filled] = chosen_keys
        layer.values[:, :, :filled] = chosen_values
        layer.cumulative_length = place
        layers.append(layer)
    return Cache(layers=layers)
