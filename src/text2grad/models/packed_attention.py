"""Attention for packed rows: all tokens of a micro-batch in one sequence without padding.

Only attention mixes tokens, so only attention needs to know the rows: queries, keys and values are padded to
(rows, width) for it, and its output is packed again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from peft import PeftModel
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

NAME = "text2grad_packed"


class PackedRows(NamedTuple):
    """The position of each packed token in its padded row.

    indices: (tokens,), row * width + column. rows, width: shape of the padded rows.
    branches: (rows, width), 0 on the prompt, k on its k-th completion or correction, -1 on padding; None where every
        row is one prompt and one completion.
    parents, forks: (rows, width), for each token of a correction the branch of its completion, and the column of the
        row up to which it continues that completion; 0 elsewhere. None where no row has a correction.
    sources: (rows * width,), the packed token at each place, where tokens are at several: each completion then has a
        row with a copy of its prompt, for attention alone, and needs no mask. Anything on padding.
    mask: (rows, 1, width, width), additive, made from the branches for each pass; None for plain causal attention.
    """

    indices: Tensor
    rows: int
    width: int
    branches: Tensor | None = None
    parents: Tensor | None = None
    forks: Tensor | None = None
    sources: Tensor | None = None
    mask: Tensor | None = None

    def pad(self, packed: Tensor) -> Tensor:
        """(1, heads, tokens, size) -> (rows, heads, width, size), 0 on padding, or with `sources` anything."""
        _, heads, _, size = packed.shape
        if self.sources is not None:
            copied = packed[0].transpose(0, 1).index_select(0, self.sources)
            return copied.view(self.rows, self.width, heads, size).transpose(1, 2)
        padded = packed.new_zeros(self.rows * self.width, heads, size)
        padded = padded.index_copy(0, self.indices, packed[0].transpose(0, 1))
        return padded.view(self.rows, self.width, heads, size).transpose(1, 2)

    def unpad(self, padded: Tensor) -> Tensor:
        """(rows, width, heads, size) -> (1, tokens, heads, size)."""
        return padded.flatten(0, 1)[self.indices].unsqueeze(0)


def packed_attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    packed_rows: PackedRows | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """SDPA; with `packed_rows`, on packed tokens, (1, heads, tokens, size) each.

    attention_mask: for calls without `packed_rows`, which brings its own mask.
    """
    if packed_rows is None:
        output, _ = sdpa_attention_forward(module, query, key, value, attention_mask, **options)
        return output, None
    query, key, value = (packed_rows.pad(tensor) for tensor in (query, key, value))
    output, _ = sdpa_attention_forward(module, query, key, value, packed_rows.mask, **options)
    return packed_rows.unpad(output), None


AttentionInterface.register(NAME, packed_attention)
AttentionMaskInterface.register(NAME, sdpa_mask)


def use_packed_attention(model: PreTrainedModel | PeftModel) -> None:
    """Switch the model to `packed_attention`, which without packed rows is plain SDPA.

    For good, not for one pass: recomputation in a backward pass needs it too.
    """
    causal: Any = model
    causal.set_attn_implementation(NAME)
