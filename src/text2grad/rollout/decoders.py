"""Next-token logits, one step after the other, for a batch of prompts that was read once.

`GrowingDecoder` runs the model as it is. `GraphDecoder` keeps every tensor in its place, so that on a GPU a step is one
replayed graph instead of a thousand launches; that is what a small model spends its time on.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Protocol

import torch
from torch import Tensor
from transformers import Cache
from transformers.cache_utils import DynamicLayer

from text2grad.models.batching import aligned
from text2grad.rollout.cache import fixed_cache, preallocated_cache
from text2grad.rollout.fast.grouped_attention import attending_in_groups, can_attend_in_groups, to_add
from text2grad.rollout.fast.rms_norm import fused, rms_norms

ROOM = 256  # tokens that a graph decoder makes room for at once
LOOKING_ROPES = {"dynamic", "longrope"}  # look how long the text is before they compute
GRAPH_COST = 1e11  # bytes that a GPU reads in the time that a graph takes to capture


class Decoder(Protocol):
    """Rows are answers under way."""

    def step(self, tokens: Tensor) -> Tensor:
        """tokens: (rows,), the last token of each answer. Returns the logits of the next, (rows, vocabulary).

        They are there until the next step, which may write over them.
        """
        ...

    def keep(self, rows: Tensor) -> None:
        """Go on with these rows only."""
        ...

    def pays_to_keep(self, rows: int) -> bool:
        """Whether it is time to go on with so many rows only. To be asked every few steps."""
        ...


def start(
    model: Any, ids: Tensor, mask: Tensor, num_generations: int, longest: int, graphs: bool
) -> tuple[Decoder, Tensor]:
    """Read the prompts, once each, and stand ready for `num_generations` answers to each, of at most `longest` tokens.

    ids, mask: (prompts, width), padded on the left. graphs: replay CUDA graphs where model and device allow it.
    Returns the decoder and the logits of the first token, (prompts * num_generations, vocabulary).
    """
    cache = preallocated_cache(model.config)
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    logits = _logits(model, ids, mask, positions, cache)
    rows = torch.arange(len(ids), device=ids.device).repeat_interleave(num_generations)
    is_plain = all(isinstance(layer, DynamicLayer) and not layer.is_sliding for layer in cache.layers)
    in_groups = is_plain and can_attend_in_groups(model)
    if graphs and in_groups and ids.is_cuda and can_be_captured(model):
        return GraphDecoder(model, cache, mask, rows, longest, capture=True), logits[rows]
    if num_generations > 1:
        cache.batch_select_indices(rows)
    return GrowingDecoder(model, cache, mask[rows], in_groups), logits[rows]


def can_be_captured(model: Any) -> bool:
    """Whether a step never asks the host. The library says so of most families, but some rotary embeddings do."""
    rope = getattr(model.config, "rope_parameters", None) or {}
    kinds = {given.get("rope_type") for given in (rope, *rope.values()) if isinstance(given, dict)}
    return bool(getattr(model, "_can_compile_fullgraph", False)) and kinds.isdisjoint(LOOKING_ROPES)


class GrowingDecoder:
    """The cache and the mask grow with every token."""

    def __init__(self, model: Any, cache: Any, mask: Tensor, in_groups: bool) -> None:
        """in_groups: attend by `grouped_attention`."""
        self._model = model
        self._cache = cache
        self._mask = mask
        self._in_groups = in_groups

    def step(self, tokens: Tensor) -> Tensor:
        self._mask = torch.cat([self._mask, self._mask.new_ones(len(self._mask), 1)], dim=1)
        positions = self._mask.sum(-1, keepdim=True) - 1
        logits = _logits_in_groups if self._in_groups else _logits
        return logits(self._model, tokens.unsqueeze(1), self._mask, positions, self._cache)

    def keep(self, rows: Tensor) -> None:
        self._cache.batch_select_indices(rows)
        self._mask = self._mask[rows]

    def pays_to_keep(self, rows: int) -> bool:
        return rows <= 0.75 * len(self._mask)


class GraphDecoder:
    """Every tensor stays in its place; when the room is used up, or few rows are left, all is laid out anew."""

    def __init__(self, model: Any, cache: Any, mask: Tensor, rows: Tensor, longest: int, capture: bool) -> None:
        """cache, mask: of the prompts, the mask (prompts, width). rows: (rows,), the prompt of each answer.

        capture: False runs the same steps uncaptured.
        """
        self._model = model
        self._norms = rms_norms(model)
        self._capture = capture
        self._done, self._left = 0, longest
        self._wasted, self._asked = 0, 0  # bytes read for rows that have ended, up to which step
        states = [(layer.keys, layer.values) for layer in cache.layers]
        self._lay_out(states, mask.bool(), mask.sum(-1, keepdim=True), rows)

    def step(self, tokens: Tensor) -> Tensor:
        if self._filled == self._attended.shape[-1]:
            self.keep(torch.arange(len(tokens), device=tokens.device))
        self._tokens.copy_(tokens.unsqueeze(1))
        if self._graph is None:
            logits = self._first_step()
        else:
            self._graph.replay()
            logits = self._logits
        self._filled += 1
        self._done += 1
        self._left -= 1
        return logits

    def keep(self, rows: Tensor) -> None:
        self._lay_out(self._states(), self._attended[:, : self._filled], self._positions, rows)

    def pays_to_keep(self, rows: int) -> bool:
        """When as much has been read for ended rows as a graph costs. How long the others go on is not known; this way
        no more than twice the least possible is spent.
        """
        self._wasted += (len(self._tokens) - rows) * self._row_bytes * (self._done - self._asked)
        self._asked = self._done
        return self._wasted > GRAPH_COST

    def _lay_out(self, states: list[tuple[Tensor, Tensor]], attended: Tensor, positions: Tensor, rows: Tensor) -> None:
        """Go on with these rows. states: keys and values of each layer.

        attended: (all rows, tokens so far); positions: (all rows, 1) of the next.
        """
        self._filled = attended.shape[1]
        length = aligned(self._filled + min(ROOM, max(self._left, 1)))
        self._place = positions.new_full((), self._filled)
        self._cache = fixed_cache(states, rows, length, self._place)
        self._row_bytes = sum(part[0].nbytes for layer in self._cache.layers for part in _stored(layer))
        self._wasted, self._asked = 0, self._done
        self._attended = attended.new_zeros(len(rows), length)
        self._attended[:, : self._filled] = attended[rows]
        self._positions = positions[rows]
        self._tokens = positions.new_zeros(len(rows), 1)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._logits = torch.empty(0)

    def _states(self) -> list[tuple[Tensor, Tensor]]:
        return [
            (keys[:, :, : self._filled], values[:, :, : self._filled])
            for keys, values in map(_stored, self._cache.layers)
        ]

    def _run(self) -> Tensor:
        """One step with all that belongs to it: what is in the graph need not be started from here."""
        self._attended.index_fill_(1, self._place.view(1), True)
        with fused(self._norms):
            logits = _logits_in_groups(self._model, self._tokens, self._attended, self._positions, self._cache)
        self._place += 1
        self._positions += 1
        return logits

    def _first_step(self) -> Tensor:
        """Compute one step as it is, in which CUDA's libraries set themselves up, and leave a graph for the next ones.

        Under autocast the graph reads the weights as they were cast when the prompts were read: a decoder ends before
        the autocast that it was made in, and before the weights change.
        """
        logits = self._run()
        if self._capture:
            device = self._tokens.device
            self._graph = torch.cuda.CUDAGraph()
            # Thread-local: what other threads ask of the GPU meanwhile is no mistake of this one.
            with (
                torch.cuda.device(device),
                torch.cuda.graph(self._graph, stream=_capturing(device), capture_error_mode="thread_local"),
            ):
                self._logits = self._run()
        return logits


@cache
def _capturing(device: torch.device) -> torch.cuda.Stream:
    """Torch's own stream for capturing is of the GPU that was current when it was first asked for."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


def _stored(layer: Any) -> tuple[Tensor, Tensor]:
    return layer.keys, layer.values


def _logits_in_groups(model: Any, ids: Tensor, mask: Tensor, positions: Tensor, cache: Cache) -> Tensor:
    """As `_logits`, for one new token a row, with `grouped_attention`."""
    hidden = to_add(mask.bool(), _stored(cache.layers[0])[1].dtype)
    with attending_in_groups(model.config):
        return _logits(model, ids, hidden, positions, cache)


def _logits(model: Any, ids: Tensor, mask: Tensor, positions: Tensor, cache: Cache) -> Tensor:
    """Of the last token of each row, (rows, vocabulary)."""
    # An index copies the last states out. As a slice of all states they are not contiguous, and a CPU would multiply
    # each row by a copy of the whole output layer.
    last = torch.arange(ids.shape[1] - 1, ids.shape[1], device=ids.device)
    out = model(
        input_ids=ids,
        attention_mask=mask,
        position_ids=positions,
        past_key_values=cache,
        use_cache=True,
        logits_to_keep=last,
    )
    logits: Tensor = out.logits[:, -1]
    return logits
