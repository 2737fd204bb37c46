"""LoRA layers and root-mean-square norms computed in fewer kernels.

A decoding step of a small model is mostly launch overhead. PEFT casts, scales and adds in separate kernels per layer
and token; merging the adapter into bfloat16 weights instead would round most of it away. The library's norms take seven
kernels each. In scoring and update the same kernels cost memory traffic: those of PEFT read and write the output of a
layer six times, those of the norms make float32 copies of the hidden states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import torch
import torch.nn.functional as F
from peft.tuners import lora
from torch import Tensor, nn

Forward = Callable[[Tensor], Tensor]
# Family -> norm class that computes what `rms_norm` does; a test compares each with the library's.
FUSABLE_NORMS = {
    "deepseek_v3": "DeepseekV3RMSNorm",
    "glm4": "Glm4RMSNorm",
    "granite": "GraniteRMSNorm",
    "llama": "LlamaRMSNorm",
    "ministral": "MinistralRMSNorm",
    "mistral": "MistralRMSNorm",
    "mixtral": "MixtralRMSNorm",
    "olmoe": "OlmoeRMSNorm",
    "phi3": "Phi3RMSNorm",
    "qwen2": "Qwen2RMSNorm",
    "qwen2_moe": "Qwen2MoeRMSNorm",
    "qwen3": "Qwen3RMSNorm",
    "qwen3_moe": "Qwen3MoeRMSNorm",
    "seed_oss": "SeedOssRMSNorm",
    "smollm3": "SmolLM3RMSNorm",
}
_FUSABLE = {f"transformers.models.{family}.modeling_{family}.{name}" for family, name in FUSABLE_NORMS.items()}


@contextmanager
def patched_forward(forwards: Sequence[tuple[Any, Callable[..., Any]]]) -> Iterator[None]:
    """Replace the forward method of each module by the function beside it, within the context."""
    before = [(module, vars(module).get("forward")) for module, _ in forwards]
    for module, forward in forwards:
        module.forward = forward
    try:
        yield
    finally:
        for module, replaced in before:
            if replaced is None:
                del module.forward
            else:
                module.forward = replaced


def fuse_modules(model: nn.Module) -> None:
    """Compute the model's norms by `rms_norm` and its adapters by `lora_linear`, for models that run under autocast.

    For good, not for one pass: recomputation in a backward pass needs it too.
    """
    for module in model.modules():
        compute: Any = lora_linear if type(module) is lora.Linear else rms_norm if _is_rms_norm(module) else None
        if compute is not None and "forward" not in vars(module):
            module.forward = partial(compute, module)


def prepared_lora(model: nn.Module, dtype: torch.dtype) -> AbstractContextManager[None]:
    """Cast and scale adapters once instead of per token, within the context, in which they must not change.

    dtype: of the layers' computation. Adapters other than plain LoRA, and disabled ones, are left unchanged.
    """
    return patched_forward([(module, _prepare(module, dtype)) for module in model.modules() if _is_plain(module)])


def _is_plain(module: Any) -> bool:
    if type(module) is not lora.Linear:
        return False
    patch = vars(module).get("forward")
    if patch is not None and getattr(patch, "func", None) is not lora_linear:  # patched by another library
        return False
    if module.disable_adapters or module.merged or len(module.active_adapters) != 1:
        return False
    (name,) = module.active_adapters
    return (
        name in module.lora_A
        and name not in module.lora_variant
        and module.lora_B[name].bias is None
        and getattr(module.lora_dropout[name], "p", 0.0) == 0.0
    )


@dataclass(frozen=True)
class PreparedLinear:
    """A linear layer and its adapter, cast and scaled: down (rank, inputs), up (outputs, rank); None without one."""

    base: Any
    down: Tensor | None
    up: Tensor | None

    def __call__(self, x: Tensor) -> Tensor:
        """x: (..., inputs) -> (..., outputs)."""
        rows = x.flatten(0, -2)
        result: Tensor = self.base(rows)
        if self.down is not None and self.up is not None:
            result = result.addmm_(F.linear(rows, self.down), self.up.t())
        return result.view(*x.shape[:-1], result.shape[-1])


def _prepare(layer: Any, dtype: torch.dtype) -> PreparedLinear:
    (name,) = layer.active_adapters
    down = layer.lora_A[name].weight.detach().to(dtype)
    up = (layer.lora_B[name].weight.detach() * layer.scaling[name]).to(dtype)
    return PreparedLinear(layer.get_base_layer(), down, up)


def lora_linear(layer: Any, x: Tensor, *args: Any, **options: Any) -> Tensor:
    """A plain LoRA layer, x: (..., inputs) -> (..., outputs): the small matrices are scaled, not the output, and the
    adapter's product is added within its matrix product. Other adapters, and disabled ones, are PEFT's.
    """
    if args or options or not _is_plain(layer):
        return cast(Tensor, type(layer).forward(layer, x, *args, **options))
    (name,) = layer.active_adapters
    rows = x.flatten(0, -2)  # of two dimensions, so that the sum in place is not one on a view, which autograd copies
    result: Tensor = layer.get_base_layer()(rows)
    down = layer.lora_A[name].weight.to(result.dtype)
    up = (layer.lora_B[name].weight * layer.scaling[name]).to(result.dtype)
    return result.addmm_(F.linear(rows, down), up.t()).view(*x.shape[:-1], len(up))


def fusable_norms(model: nn.Module) -> list[Any]:
    """Return the model's norms that `rms_norm` can compute."""
    return [module for module in model.modules() if _is_rms_norm(module) and "forward" not in vars(module)]


def is_fusable_norm(norm: nn.Module) -> bool:
    """Return whether `rms_norm` computes what the norm does, patched as it may be."""
    patch = vars(norm).get("forward")
    return _is_rms_norm(norm) and (patch is None or getattr(patch, "func", None) is rms_norm)


def _is_rms_norm(module: nn.Module) -> bool:
    return f"{type(module).__module__}.{type(module).__name__}" in _FUSABLE


def rms_norm(norm: Any, states: Tensor) -> Tensor:
    """states: (..., width). Rounded once, at the end; the library also rounds before multiplying by the weight.

    Without autocast, which would make a float32 copy first: the kernel computes in float32 anyway.
    """
    dtype = torch.promote_types(states.dtype, norm.weight.dtype)
    with torch.autocast(states.device.type, enabled=False):
        return F.rms_norm(states.to(dtype), norm.weight.shape, norm.weight.to(dtype), norm.variance_epsilon)


def fused_norms(norms: Sequence[Any]) -> AbstractContextManager[None]:
    """Compute these norms by `rms_norm` within the context."""
    return patched_forward([(norm, partial(rms_norm, norm)) for norm in norms])
