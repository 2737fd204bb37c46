"""Attention of one new token to a long cache, for models in which several heads share keys and values.

The general kernels copy keys and values for every head that shares them, per step and layer; for a single query that
copy is most of the work. Here the heads of a group are the rows of one small matrix instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface

from text2grad.models.packed_attention import NAME as PACKED

NAME = "text2grad_grouped"


def grouped_attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor,
    scaling: float | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """query: (rows, heads, 1, width); key: (rows, groups, tokens, width); value: (rows, groups, tokens, value width).

    Heads of a group are neighbours. attention_mask: (rows, 1, 1, tokens), see `additive_mask`; in families with biases
    per head (rows, heads, 1, tokens). Returns (rows, 1, heads, value width).
    """
    rows, heads, width = len(query), query.shape[1], query.shape[3]
    groups = key.shape[1]
    if attention_mask.shape[1] == heads:
        attention_mask = attention_mask.view(rows, groups, heads // groups, -1)
    scale = width**-0.5 if scaling is None else scaling
    # Autocast would cast to float32 for the softmax, which computes in float32 anyway.
    with torch.autocast(query.device.type, enabled=False):
        scores = query.to(key.dtype).view(rows, groups, heads // groups, width) @ key.transpose(2, 3)
        weights = torch.add(attention_mask, scores, alpha=scale).softmax(-1).to(value.dtype)
        return (weights @ value).view(rows, 1, heads, value.shape[3]), None


def additive_mask(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """(rows, tokens), true where a token is attended to -> (rows, 1, 1, tokens), 0 or -infinity."""
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, float("-inf"))[:, None, None]


AttentionInterface.register(NAME, grouped_attention)


def supports_grouped_attention(model: Any) -> bool:
    """Return whether the model uses the library's attention interface, with SDPA."""
    backend = getattr(model, "_supports_attention_backend", False)
    return bool(backend) and model.config._attn_implementation in ("sdpa", PACKED)


@contextmanager
def use_grouped_attention(config: Any) -> Iterator[None]:
    """Decode with `grouped_attention` within the context."""
    before = config._attn_implementation
    config._attn_implementation = NAME
    try:
        yield
    finally:
        config._attn_implementation = before
