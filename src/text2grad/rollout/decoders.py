"""Step-by-step decoding of a batch: the prefill of the prompts, then next-token logits for each step."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import Cache

from text2grad.rollout.cache import preallocated_cache


class PlainDecoder:
    """Decodes a batch of unfinished completions, with a cache and an attention mask that grow with every token."""

    def __init__(self, model: Any, cache: Any, mask: Tensor, rows: Tensor) -> None:
        """cache, mask: of the prompts, the mask (prompts, width). rows: (rows,), the prompt of each completion."""
        self._model = model
        self._cache = cache
        self._mask = mask
        if len(rows) > len(mask):
            self.keep(rows)

    def step(self, tokens: Tensor) -> Tensor:
        """tokens: (rows,), the last token of each row. Returns the logits of the next, (rows, vocabulary)."""
        self._mask = torch.cat([self._mask, self._mask.new_ones(len(self._mask), 1)], dim=1)
        positions = self._mask.sum(-1, keepdim=True) - 1
        return self.next_logits(tokens.unsqueeze(1), positions)

    def next_logits(self, ids: Tensor, positions: Tensor) -> Tensor:
        """ids, positions: (rows, 1). Returns (rows, vocabulary)."""
        return next_token_logits(self._model, ids, self._mask, positions, self._cache)

    def keep(self, rows: Tensor) -> None:
        """Drop all other rows."""
        self._cache.batch_select_indices(rows)
        self._mask = self._mask[rows]

    def should_compact(self, num_rows: int) -> bool:
        """Return whether dropping all but `num_rows` rows pays off now. Called every few steps."""
        return num_rows <= 0.75 * len(self._mask)


def prefill(model: Any, ids: Tensor, mask: Tensor) -> tuple[Cache, Tensor]:
    """Run the prompts once, ids and mask (prompts, width), padded on the left.

    Returns their cache and the logits of the first token, (prompts, vocabulary).
    """
    cache = preallocated_cache(model.config)
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    return cache, next_token_logits(model, ids, mask, positions, cache)


def next_token_logits(model: Any, ids: Tensor, mask: Tensor, positions: Tensor, cache: Cache) -> Tensor:
    """Return the logits after the last token of each row, (rows, vocabulary)."""
    # An index copies the last states. A slice of all states is not contiguous, and a CPU would multiply each row by a
    # copy of the whole output layer.
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
