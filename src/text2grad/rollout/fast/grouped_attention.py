"""Attention of one new token to a long cache, for models in which several heads share their keys and values.

The general kernels copy keys and values once for every head that shares them, at every step and in every layer; for a
single query that copy is most of the work. Here the heads of a group are the rows of one small matrix instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface

from text2grad.models.flat_attention import NAME as FLAT

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

    Heads of a group are neighbours. attention_mask: (rows, 1, 1, tokens), see `to_add`; of a family that weighs tokens
    by itself (rows, heads, 1, tokens). Returns (rows, 1, heads, value width).
    """
    rows, heads, width = len(query), query.shape[1], query.shape[3]
    groups = key.shape[1]
    if attention_mask.shape[1] == heads:
        attention_mask = attention_mask.view(rows, groups, heads // groups, -1)
    scale = width**-0.5 if scaling is None else scaling
    # Autocast would have the softmax in float32, which it is inside anyway, and cast before and after it.
    with torch.autocast(query.device.type, enabled=False):
        scores = query.to(key.dtype).view(rows, groups, heads // groups, width) @ key.transpose(2, 3)
        weights = torch.add(attention_mask, scores, alpha=scale).softmax(-1).to(value.dtype)
        return (weights @ value).view(rows, 1, heads, value.shape[3]), None


def to_add(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """(rows, tokens), true where a token is attended to -> (rows, 1, 1, tokens), to be added to attention scores."""
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, float("-inf"))[:, None, None]


AttentionInterface.register(NAME, grouped_attention)


def can_attend_in_groups(model: Any) -> bool:
    """Whether the model takes its attention from the library's table, and there torch's own kernel."""
    backend = getattr(model, "_supports_attention_backend", False)
    return bool(backend) and model.config._attn_implementation in ("sdpa", FLAT)


@contextmanager
def attending_in_groups(config: Any) -> Iterator[None]:
    """Decode with `grouped_attention` for a while; only for models that can."""
    before = config._attn_implementation
    config._attn_implementation = NAME
    try:
        yield
    finally:
        config._attn_implementation = before
