"""Decoder layers of the Llama family for one new token per row, in fewer kernels.

A decoding step reads every weight once, for a few rows: small kernels and the gaps between them take longer than the
reading. Here projections of the same input are one matrix product, residuals are added within theirs, and queries and
keys are rotated together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple, cast

import torch
import torch.nn.functional as F
from peft.tuners import lora
from torch import Tensor, nn

from text2grad.models.backbone import get_backbone
from text2grad.rollout.fast.grouped_attention import grouped_attention
from text2grad.rollout.fast.modules import PreparedLinear, is_fusable_norm, rms_norm

# Families whose decoder layers compute what `fused_layer` does, with the prefix of their classes; a test compares each
# with the library's.
FUSABLE_FAMILIES = {"llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen2", "qwen3": "Qwen3"}
MAX_MEMORY_SHARE = 0.25  # of the GPU's free memory, for copies of the weights


class StackedLinear(NamedTuple):
    """Linear layers of the same input as one.

    weight: (outputs, inputs). bias: (outputs,). down, up: of the adapters, (ranks, inputs) and (outputs, ranks).
    """

    weight: Tensor
    bias: Tensor | None
    down: Tensor | None
    up: Tensor | None

    def __call__(self, states: Tensor, residual: Tensor | None = None) -> Tensor:
        """states: (rows, inputs) -> (rows, outputs). A residual is added to, in place where dtypes allow it."""
        if residual is not None and residual.dtype == self.weight.dtype and self.bias is None:
            return self._adapt(residual.addmm_(states, self.weight.t()), states)
        result = self._adapt(F.linear(states, self.weight, self.bias), states)
        return result if residual is None else residual + result

    def _adapt(self, result: Tensor, states: Tensor) -> Tensor:
        if self.down is None or self.up is None:
            return result
        return result.addmm_(F.linear(states, self.down), self.up.t())


class FusedWeights(NamedTuple):
    """Weights of a layer. norms: of queries and keys, (heads + groups, head width), where the family has them."""

    inputs: StackedLinear  # queries, keys and values
    output: StackedLinear
    gates: StackedLinear  # gate and up
    down: StackedLinear
    norms: Tensor | None


def fused_layers(model: Any, dtype: torch.dtype, needed: int = 0) -> list[tuple[Any, Callable[..., Any]]]:
    """Return modules with the forward functions that replace theirs (`patched_forward`). dtype: of the computation.

    None where a layer cannot be fused, or where copies of the weights would take too much of the GPU's memory, of which
    the cache is going to need so many bytes.
    """
    backbone = get_backbone(model)
    layers = list(getattr(backbone, "layers", ()))
    rotary = getattr(backbone, "rotary_emb", None)
    if not layers or rotary is None or not all(map(_is_fusable, layers)):
        return []
    if not _fits(sum(_copied_bytes(layer, dtype) for layer in layers), needed, model.device):
        return []
    fused = [(layer, partial(fused_layer, layer, _fuse(layer, dtype))) for layer in layers]
    return [(rotary, _signed(rotary.forward, layers[0].self_attn.head_dim, model.device)), *fused]


def fused_layer(
    layer: Any,
    weights: FusedWeights,
    hidden_states: Tensor,
    attention_mask: Tensor,
    position_embeddings: tuple[Tensor, Tensor],
    past_key_values: Any,
    **_: Any,
) -> Tensor:
    """hidden_states: (rows, 1, width) -> the same. attention_mask: (rows, 1, 1, tokens), see `additive_mask`.

    position_embeddings: cosines, and sines with the signs of `_signed`, (rows, 1, head width) each.
    """
    attention, dtype = layer.self_attn, weights.inputs.weight.dtype
    width = attention.head_dim
    heads, groups = attention.config.num_attention_heads, attention.config.num_key_value_heads
    with torch.autocast(hidden_states.device.type, enabled=False):
        residual = hidden_states.squeeze(1)
        normed = rms_norm(layer.input_layernorm, residual).to(dtype)
        projected = weights.inputs(normed).view(len(residual), heads + 2 * groups, width)
        turned = projected[:, : heads + groups]
        if weights.norms is not None:
            turned = turned.to(weights.norms.dtype)
            turned = F.rms_norm(turned, (width,), None, attention.q_norm.variance_epsilon) * weights.norms
        turned = rotate(turned, *position_embeddings)
        new = turned[:, heads:].unsqueeze(2), projected[:, heads + groups :].unsqueeze(2)
        keys, values = past_key_values.update(*new, attention.layer_idx)
        queries = turned[:, :heads].unsqueeze(2)
        mixed, _weights = grouped_attention(attention, queries, keys, values, attention_mask, attention.scaling)
        residual = weights.output(mixed.view(len(residual), heads * width), residual)
        gate, up = weights.gates(rms_norm(layer.post_attention_layernorm, residual).to(dtype)).chunk(2, dim=-1)
        return weights.down(F.silu(gate) * up, residual).unsqueeze(1)


def rotate(states: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Rotary embedding. states: (rows, heads, width); cosines, signed sines: (rows, 1, width)."""
    swapped = states.view(*states.shape[:-1], 2, -1).flip(-2).flatten(-2)
    return torch.addcmul(states * cosines, swapped, sines)


def _signed(forward: Callable[..., tuple[Tensor, Tensor]], width: int, device: torch.device) -> Callable[..., Any]:
    """Return the cosines and sines of a rotary embedding, the sines of each head's first half with a minus.

    The library negates that half of the states instead, in each layer.
    """
    signs = torch.ones(width, dtype=torch.int8, device=device)
    signs[: width // 2] = -1

    def signed(*args: Any, **options: Any) -> tuple[Tensor, Tensor]:
        cosines, sines = forward(*args, **options)
        return cosines, sines * signs

    return signed


def _is_fusable(layer: Any) -> bool:
    """Whether the layer is the library's own, through and through: nobody has replaced, patched or hooked a part."""
    family = type(layer).__module__.rpartition(".modeling_")[2]
    prefix = FUSABLE_FAMILIES.get(family, "")
    if not prefix or not _is_own(layer, family, f"{prefix}DecoderLayer"):
        return False
    attention, mlp = layer.self_attn, layer.mlp
    if not (_is_own(attention, family, f"{prefix}Attention") and _is_own(mlp, family, f"{prefix}MLP")):
        return False
    norms = [layer.input_layernorm, layer.post_attention_layernorm]
    inner = [attention.q_norm, attention.k_norm] if hasattr(attention, "q_norm") else []
    return (
        type(mlp.act_fn).__name__ in ("SiLU", "SiLUActivation")
        and all(is_fusable_norm(norm) and not _has_hooks(norm) for norm in [*norms, *inner])
        and not _has_hooks(mlp.act_fn)
        and "forward" not in vars(mlp.act_fn)
        and all(_parts(linear) is not None for linear in _linears(layer))
    )


def _is_own(module: Any, family: str, name: str) -> bool:
    """Whether a module is of that class of the library, and computes what the class does."""
    kind = type(module)
    is_class = (kind.__module__, kind.__name__) == (f"transformers.models.{family}.modeling_{family}", name)
    return is_class and "forward" not in vars(module) and not _has_hooks(module)


def _has_hooks(module: Any) -> bool:
    return bool(module._forward_hooks or module._forward_pre_hooks)


def _linears(layer: Any) -> list[Any]:
    attention, mlp = layer.self_attn, layer.mlp
    inputs = [attention.q_proj, attention.k_proj, attention.v_proj]
    return [*inputs, attention.o_proj, mlp.gate_proj, mlp.up_proj, mlp.down_proj]


def _parts(linear: Any) -> PreparedLinear | None:
    """Return the weights of a plain linear layer, or of one with a prepared or disabled adapter; None of others."""
    patch = vars(linear).get("forward")
    if isinstance(patch, PreparedLinear):
        found = patch
    elif type(linear) is lora.Linear and linear.disable_adapters and not linear.merged:
        found = PreparedLinear(linear.get_base_layer(), None, None)
    else:
        found = PreparedLinear(linear, None, None)
    base = found.base
    is_plain = type(base) is nn.Linear and "forward" not in vars(base) and type(base.weight) in (nn.Parameter, Tensor)
    return found if is_plain and not _has_hooks(base) and not _has_hooks(linear) else None


def _copied_bytes(layer: Any, dtype: torch.dtype) -> int:
    """Return the bytes of the weights that `_fuse` copies: those that are stacked, and those of another dtype."""
    attention, mlp = layer.self_attn, layer.mlp
    alone = [cast(PreparedLinear, _parts(linear)).base.weight for linear in (attention.o_proj, mlp.down_proj)]
    stacked = (attention.q_proj, attention.k_proj, attention.v_proj, mlp.gate_proj, mlp.up_proj)
    weights = [cast(PreparedLinear, _parts(linear)).base.weight for linear in stacked]
    numbers: int = sum(w.numel() for w in [*weights, *(w for w in alone if w.dtype != dtype)])
    return numbers * dtype.itemsize


def _fits(size: int, needed: int, device: torch.device) -> bool:
    """Whether copies of the weights are a small part of the memory that is free and not needed otherwise; in bytes."""
    if device.type != "cuda":
        return True
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return size <= MAX_MEMORY_SHARE * (torch.cuda.mem_get_info(device)[0] + unused - needed)


def _fuse(layer: Any, dtype: torch.dtype) -> FusedWeights:
    attention, mlp = layer.self_attn, layer.mlp
    norms = None
    if hasattr(attention, "q_norm"):
        heads, groups = attention.config.num_attention_heads, attention.config.num_key_value_heads
        rows = [attention.q_norm.weight.expand(heads, -1), attention.k_norm.weight.expand(groups, -1)]
        norms = torch.cat(rows).detach()
    return FusedWeights(
        _stack([attention.q_proj, attention.k_proj, attention.v_proj], dtype),
        _stack([attention.o_proj], dtype),
        _stack([mlp.gate_proj, mlp.up_proj], dtype),
        _stack([mlp.down_proj], dtype),
        norms,
    )


def _stack(linears: Sequence[Any], dtype: torch.dtype) -> StackedLinear:
    parts = [cast(PreparedLinear, _parts(linear)) for linear in linears]
    weight = _cat(part.base.weight.detach().to(dtype) for part in parts)
    bias = None
    if any(part.base.bias is not None for part in parts):
        none = [part.base.weight.new_zeros(len(part.base.weight)) for part in parts]
        bias = _cat((none[i] if p.base.bias is None else p.base.bias).detach().to(dtype) for i, p in enumerate(parts))
    if all(part.down is None for part in parts):
        return StackedLinear(weight, bias, None, None)
    downs = [weight.new_zeros(0, weight.shape[1]) if part.down is None else part.down for part in parts]
    ups = [weight.new_zeros(len(part.base.weight), 0) if part.up is None else part.up for part in parts]
    return StackedLinear(weight, bias, _cat(downs), torch.block_diag(*ups))  # type: ignore[no-untyped-call]


def _cat(tensors: Iterable[Tensor]) -> Tensor:
    """As torch.cat, without a copy of a single tensor."""
    found = list(tensors)
    return found[0] if len(found) == 1 else torch.cat(found)
