"""Attention for tokens that lie one after the other, without padding, though they belong to many rows.

All other layers treat tokens alone, so only attention has to know the rows: queries, keys and values are spread to
padded rows for it, and what it gives is gathered again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from peft import PeftModel
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

NAME = "text2grad_flat"


class Spread(NamedTuple):
    """Where each token lies in its padded row.

    places: (tokens,), row * width + column. rows, width: of the padded rows.
    mask: (rows, 1, width, width), to be added to attention scores; None where each row is plain causal text.
    """

    places: Tensor
    rows: int
    width: int
    mask: Tensor | None

    def to_rows(self, flat: Tensor) -> Tensor:
        """(1, heads, tokens, size) -> (rows, heads, width, size), 0 on padding."""
        _, heads, _, size = flat.shape
        padded = flat.new_zeros(self.rows * self.width, heads, size).index_copy(0, self.places, flat[0].transpose(0, 1))
        return padded.view(self.rows, self.width, heads, size).transpose(1, 2)

    def to_flat(self, padded: Tensor) -> Tensor:
        """(rows, width, heads, size) -> (1, tokens, heads, size)."""
        return padded.flatten(0, 1)[self.places].unsqueeze(0)


def flat_attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    spread: Spread | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """Torch's own attention; with `spread`, of flat tokens, (1, heads, tokens, size) each.

    attention_mask: for calls without `spread`; where there is one, it has the mask.
    """
    if spread is None:
        attended, _ = sdpa_attention_forward(module, query, key, value, attention_mask, **options)
        return attended, None
    query, key, value = (spread.to_rows(tensor) for tensor in (query, key, value))
    attended, _ = sdpa_attention_forward(module, query, key, value, spread.mask, **options)
    return spread.to_flat(attended), None


AttentionInterface.register(NAME, flat_attention)
AttentionMaskInterface.register(NAME, sdpa_mask)


def attend_flat(model: PreTrainedModel | PeftModel) -> None:
    """Let the model take flat tokens from now on. Not for a while only: recomputation in a backward pass needs it too.

    Everything else that the model is asked for it does as before.
    """
    causal: Any = model
    causal.set_attn_implementation(NAME)
