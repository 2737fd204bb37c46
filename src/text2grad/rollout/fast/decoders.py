"""Decoders for models with grouped attention, without and with CUDA graphs.

In `GraphDecoder` every tensor keeps its address, so that on a GPU a step is one replayed graph instead of a thousand
kernel launches, which is what a small model spends its time on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from math import isqrt
from typing import Any, cast

import torch
from torch import Tensor
from transformers.cache_utils import Cache, DynamicLayer, StaticLayer

from text2grad.models.batching import round_up_to_8
from text2grad.rollout.decoders import PlainDecoder, next_token_logits
from text2grad.rollout.fast.fused_layers import fused_layers
from text2grad.rollout.fast.grouped_attention import additive_mask, supports_grouped_attention, use_grouped_attention
from text2grad.rollout.fast.modules import fusable_norms, fused_norms, patched_forward

MIN_GROWTH = 64  # tokens by which a graph decoder extends its cache at least
DATA_DEPENDENT_ROPES = {"dynamic", "longrope"}  # read the sequence length on the host
CAPTURE_COST = 1e11  # bytes that a GPU reads in the time that capturing a graph takes
Sample = Callable[[Tensor], Tensor]  # logits, (rows, vocabulary) -> the next token of each row, (rows,)


def fast_decoder(
    model: Any, cache: Any, mask: Tensor, rows: Tensor, max_tokens: int
) -> GroupedDecoder | GraphDecoder | None:
    """Return the fastest decoder that model and device support; None where that is the plain one.

    cache, mask, rows: as in `PlainDecoder`. max_tokens: the longest completion.
    """
    has_plain_cache = all(isinstance(layer, DynamicLayer) and not layer.is_sliding for layer in cache.layers)
    if not (has_plain_cache and supports_grouped_attention(model)):
        return None
    if mask.is_cuda and can_be_captured(model):
        return GraphDecoder(model, cache, mask, rows, max_tokens, capture=True)
    return GroupedDecoder(model, cache, mask, rows)


def can_be_captured(model: Any) -> bool:
    """Return whether a step never synchronises with the host, as the library declares except for some RoPE types."""
    rope = getattr(model.config, "rope_parameters", None) or {}
    kinds = {given.get("rope_type") for given in (rope, *rope.values()) if isinstance(given, dict)}
    return bool(getattr(model, "_can_compile_fullgraph", False)) and kinds.isdisjoint(DATA_DEPENDENT_ROPES)


class GroupedDecoder(PlainDecoder):
    """The plain decoder with grouped attention."""

    def next_logits(self, ids: Tensor, positions: Tensor) -> Tensor:
        return _grouped_logits(self._model, ids, self._mask, positions, self._cache)


class GraphDecoder:
    """As `PlainDecoder`, with fused layers and fixed tensors, reallocated when the cache is full or few rows are left.

    What a step returns is valid until the next one, which overwrites it.
    """

    _graph: torch.cuda.CUDAGraph | None

    def __init__(self, model: Any, cache: Any, mask: Tensor, rows: Tensor, max_tokens: int, capture: bool) -> None:
        """cache, mask, rows: as in `PlainDecoder`. max_tokens: the longest completion.

        capture: False runs the same steps without a graph.
        """
        self._model = model
        self._norms = fusable_norms(model)
        self._capture = capture
        self._num_steps, self._max_steps = 0, max_tokens
        self._wasted, self._checked_step = 0, 0  # bytes read for finished rows, counted up to this step
        self._sample: Sample | None = None
        states = [_stored(layer) for layer in cache.layers]
        self._bytes_per_token = sum((k[0, :, 0].numel() + v[0, :, 0].numel()) * v.itemsize for k, v in states)
        whole_cache = len(rows) * self._bytes_per_token * (mask.shape[1] + max_tokens)
        self._layers = fused_layers(model, states[0][1].dtype, whole_cache)
        self._allocate(states, mask.bool(), mask.sum(-1, keepdim=True), rows)

    def step(self, tokens: Tensor) -> Tensor:
        """As `PlainDecoder.step`, by a replay of the graph where there is one."""
        return self._step(tokens)

    def step_and_sample(self, tokens: Tensor, sample: Sample) -> Tensor:
        """As `step`, then sample from its logits: both in the same graph. Returns the sampled tokens, (rows,).

        sample: the same in every step; what it reads and writes keeps its address until `keep` is called.
        """
        self._sample = sample
        return self._step(tokens)

    def _step(self, tokens: Tensor) -> Tensor:
        if self._length == self._mask.shape[-1]:
            self.keep(torch.arange(len(tokens), device=tokens.device))
        self._tokens.copy_(tokens.unsqueeze(1))
        if self._graph is None:
            result = self._first_step()
        else:
            self._graph.replay()
            result = self._result
        self._length += 1
        self._num_steps += 1
        return result

    def keep(self, rows: Tensor) -> None:
        """Drop all other rows: the tensors are reallocated."""
        self._graph, self._result = None, torch.empty(0)
        self._allocate(self._take_states(), self._mask[:, : self._length], self._positions, rows)

    def should_compact(self, num_rows: int) -> bool:
        """True once as many bytes were read for finished rows as a capture costs. How long the others will last is
        unknown; this way at most twice the minimum is spent.
        """
        self._wasted += (len(self._tokens) - num_rows) * self._bytes_per_row * (self._num_steps - self._checked_step)
        self._checked_step = self._num_steps
        return self._wasted > CAPTURE_COST

    def _take_states(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield keys and values layer by layer, and free each layer after it: two whole caches need not fit."""
        length = self._length
        while self._cache.layers:
            keys, values = _stored(self._cache.layers.pop(0))
            yield keys[:, :, :length], values[:, :, :length]
            del keys, values

    def _allocate(self, states: Iterable[tuple[Tensor, Tensor]], mask: Tensor, positions: Tensor, rows: Tensor) -> None:
        """Continue with these rows. states: keys and values of each layer.

        mask: (all rows, tokens so far); positions: (all rows, 1) of the next token.
        """
        self._length = mask.shape[1]
        growth = cache_growth(len(rows) * self._bytes_per_token)
        capacity = round_up_to_8(self._length + min(growth, max(self._max_steps - self._num_steps, 1)))
        self._index = positions.new_full((), self._length)
        self._cache = fixed_cache(states, rows, capacity, self._index)
        self._bytes_per_row = capacity * self._bytes_per_token
        self._wasted, self._checked_step = 0, self._num_steps
        self._mask = mask.new_zeros(len(rows), capacity)
        self._mask[:, : self._length] = mask[rows]
        self._positions = positions[rows]
        self._tokens = positions.new_zeros(len(rows), 1)
        self._graph = None
        self._result = torch.empty(0)

    def _run(self) -> Tensor:
        """Run one step, bookkeeping on the device included, so that the graph contains all of it."""
        self._mask.index_fill_(1, self._index.view(1), True)
        with fused_norms(self._norms), patched_forward(self._layers):
            logits = _grouped_logits(self._model, self._tokens, self._mask, self._positions, self._cache)
        self._index += 1
        self._positions += 1
        return logits if self._sample is None else self._sample(logits)

    def _first_step(self) -> Tensor:
        """Run one step, in which CUDA's libraries initialise themselves, and capture the graph of the next ones.

        Under autocast the graph reads the weights as they were cast in the prefill: a decoder must not outlive the
        autocast context in which it was made, nor a change of the weights.
        """
        result = self._run()
        if self._capture:
            device = self._tokens.device
            self._graph = torch.cuda.CUDAGraph()
            # thread_local: CUDA calls of other threads must not invalidate the capture.
            with (
                torch.cuda.device(device),
                torch.cuda.graph(self._graph, stream=_capture_stream(device), capture_error_mode="thread_local"),
            ):
                self._result = self._run()
        return result


def cache_growth(bytes_per_token: int) -> int:
    """Return by how many tokens to extend a cache. bytes_per_token: of all rows.

    Every step reads the whole cache, also what is still free: half of the extension on average. Together with a capture
    per extension, n tokens cost bytes_per_token * n / 2 + CAPTURE_COST / n each, which is least at this n.
    """
    return max(MIN_GROWTH, isqrt(int(2 * CAPTURE_COST) // bytes_per_token))


class FixedLayer(StaticLayer):  # type: ignore[no-untyped-call]
    """A preallocated cache layer that takes one token at a time, at an index that its owner sets for all layers.

    Keys have the values' dtype: under autocast the library's are float32.
    """

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        keys, values = cast(Tensor, self.keys), cast(Tensor, self.values)
        index = cast(Tensor, self.cumulative_length).view(1)
        keys.index_copy_(2, index, key_states.to(values.dtype))
        values.index_copy_(2, index, value_states)
        return keys, values


def fixed_cache(states: Iterable[tuple[Tensor, Tensor]], rows: Tensor, capacity: int, index: Tensor) -> Cache:
    """Return a cache of fixed tensors for `capacity` tokens that starts with these rows of the states.

    states: keys and values of each layer, (batch, heads, tokens, width) each. rows: (rows,), of the batch, also more
    than once. index: (), where the next token is written; advanced by the caller.
    """
    layers = []
    for keys, values in states:
        layer: Any = FixedLayer(max_cache_len=capacity)
        selected_keys, selected_values = keys.to(values.dtype)[rows], values[rows]
        layer.lazy_initialization(selected_keys, selected_values)
        length = keys.shape[2]
        layer.keys[:, :, :length] = selected_keys
        layer.values[:, :, :length] = selected_values
        layer.cumulative_length = index
        layers.append(layer)
        del keys, values, selected_keys, selected_values
    return Cache(layers=layers)


@cache
def _capture_stream(device: torch.device) -> torch.cuda.Stream:
    """Torch's default capture stream belongs to the GPU that was current at its first use."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


def _stored(layer: Any) -> tuple[Tensor, Tensor]:
    return layer.keys, layer.values


def _grouped_logits(model: Any, ids: Tensor, mask: Tensor, positions: Tensor, cache: Cache) -> Tensor:
    """As `next_token_logits`, for one new token per row, with `grouped_attention`."""
    additive = additive_mask(mask.bool(), _stored(cache.layers[0])[1].dtype)
    with use_grouped_attention(model.config):
        return next_token_logits(model, ids, additive, positions, cache)
