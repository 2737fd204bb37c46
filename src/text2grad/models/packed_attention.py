"""Attention for packed rows: all tokens of a micro-batch in one sequence without padding.

Only attention mixes tokens, so only attention needs to know the rows: queries, keys and values are padded to
(rows, width) for it, in one block or in several of similar rows, and its output is packed again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from peft import PeftModel
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

NAME = "text2grad_packed"


class PackedRows(NamedTuple):
    """The position of each packed token in its padded row.

    indices: (tokens,), the place of each: row * width + column. rows, width: shape of the padded rows.
    branches: (rows, width), 0 on the prompt, k on its k-th completion or correction, -1 on padding; None where every
        row is one prompt and one completion.
    parents, forks: (rows, width), for each token of a correction the branch of its completion, and the column of the
        row up to which it continues that completion; 0 elsewhere. None where no row has a correction.
    sources: (places,), the packed token at each place, where tokens are at several: each completion then has a row with
        a copy of its prompt, for attention alone, and needs no mask. Anything on padding.
    copies: with `sources`, for each n above 1 the tokens that are at n places, (tokens,), and their places,
        (tokens, n).
    blocks: (rows, width) of each block of rows, one after the other, with `sources`; () is one of all rows.
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
    blocks: tuple[tuple[int, int], ...] = ()
    copies: tuple[tuple[Tensor, Tensor], ...] = ()

    def pad(self, packed: Tensor) -> list[Tensor]:
        """(1, heads, tokens, size) -> (rows, heads, width, size) of each block.

        Padding is 0, or with `sources` anything.
        """
        _, heads, _, size = packed.shape
        blocks = self.blocks or ((self.rows, self.width),)
        if self.sources is not None:
            tokens = packed[0].transpose(0, 1)
            if torch.is_grad_enabled() and tokens.requires_grad and not torch.compiler.is_compiling():
                flat = [index for pair in self.copies for index in pair]
                padded = copy_tokens(tokens, self.sources, self.indices, *flat)
            else:  # a compiled graph would be another one for each number of copies
                padded = tokens.index_select(0, self.sources)
        else:
            padded = packed.new_zeros(self.rows * self.width, heads, size)
            padded = padded.index_copy(0, self.indices, packed[0].transpose(0, 1))
        pieces = torch.split(padded, [rows * width for rows, width in blocks])
        return [
            piece.view(rows, width, heads, size).transpose(1, 2)
            for piece, (rows, width) in zip(pieces, blocks, strict=True)
        ]

    def unpad(self, padded: Sequence[Tensor]) -> Tensor:
        """(rows, width, heads, size) of each block -> (1, tokens, heads, size)."""
        places = torch.cat([block.flatten(0, 1) for block in padded])
        if torch.compiler.is_compiling():
            return places.index_select(0, self.indices).unsqueeze(0)
        return take_places(places, self.indices).unsqueeze(0)


class _CopyTokens(torch.autograd.Function):
    """Tokens at their places: tokens[sources], whose gradient sums over the places of each token.

    That of an index would be added place by place: slowly on a GPU, rounded each time, and in no fixed order. Gradients
    on padding are 0, since nothing reads what attention makes of it.
    """

    @staticmethod
    def forward(ctx: Any, tokens: Tensor, sources: Tensor, indices: Tensor, *copies: Tensor) -> Tensor:
        """tokens: (tokens, ...); sources, indices, copies: of `PackedRows`. Returns (places, ...)."""
        ctx.save_for_backward(indices, *copies)
        return tokens.index_select(0, sources)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,), (indices, *copies) = gradients, ctx.saved_tensors
        summed = gradient.index_select(0, indices)
        for tokens, places in zip(copies[::2], copies[1::2], strict=True):
            each = gradient.index_select(0, places.flatten()).view(*places.shape, *gradient.shape[1:])
            summed.index_copy_(0, tokens, each.sum(1, dtype=each.dtype))
        return summed, None, None, *[None] * len(copies)


class _TakePlaces(torch.autograd.Function):
    """places[indices] of indices that differ: their gradients are copied, not added."""

    @staticmethod
    def forward(ctx: Any, places: Tensor, indices: Tensor) -> Tensor:
        """places: (places, ...); indices: (tokens,). Returns (tokens, ...)."""
        ctx.save_for_backward(indices)
        ctx.shape = places.shape
        return places.index_select(0, indices)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (gradient,), (indices,) = gradients, ctx.saved_tensors
        return gradient.new_zeros(ctx.shape).index_copy_(0, indices, gradient), None


copy_tokens: Callable[..., Tensor] = _CopyTokens.apply
take_places: Callable[..., Tensor] = _TakePlaces.apply


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
    blocks = zip(packed_rows.pad(query), packed_rows.pad(key), packed_rows.pad(value), strict=True)
    outputs = [sdpa_attention_forward(module, q, k, v, packed_rows.mask, **options)[0] for q, k, v in blocks]
    return packed_rows.unpad(outputs), None


AttentionInterface.register(NAME, packed_attention)
AttentionMaskInterface.register(NAME, sdpa_mask)


def use_packed_attention(model: PreTrainedModel | PeftModel) -> None:
    """Switch the model to `packed_attention`, which without packed rows is plain SDPA.

    For good, not for one pass: recomputation in a backward pass needs it too.
    """
    causal: Any = model
    causal.set_attn_implementation(NAME)
