"""Modules computed in fewer kernels while tokens are sampled: LoRA layers and root-mean-square norms.

A decoding step of a small model is mostly launch overhead. PEFT casts, scales and adds in separate kernels per layer
and token; merging the adapter into bfloat16 weights instead would round most of it away. The library's norms take seven
kernels each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

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
def patched_forward(forwards: Sequence[tuple[Any, Forward]]) -> Iterator[None]:
    """Replace the forward method of each module by the function beside it, within the context."""
    for module, forward in forwards:
        module.forward = forward
    try:
        yield
    finally:
        for module, _ in forwards:
            del module.forward


def prepared_lora(model: nn.Module, dtype: torch.dtype) -> AbstractContextManager[None]:
    """Cast and scale adapters once instead of per token, within the context, in which they must not change.

    dtype: of the layers' computation. Adapters other than plain LoRA, and disabled ones, are left unchanged.
    """
    return patched_forward([(module, _lora_forward(module, dtype)) for module in model.modules() if _is_plain(module)])


def _is_plain(module: Any) -> bool:
    if type(module) is not lora.Linear or "forward" in vars(module):  # patched by another library
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


def _lora_forward(layer: Any, dtype: torch.dtype) -> Forward:
    base = layer.get_base_layer()
    (name,) = layer.active_adapters
    down = layer.lora_A[name].weight.detach().to(dtype)
    up = (layer.lora_B[name].weight.detach() * layer.scaling[name]).to(dtype)

    def forward(x: Tensor) -> Tensor:
        adapted: Tensor = base(x) + F.linear(F.linear(x, down), up)
        return adapted

    return forward


def fusable_norms(model: nn.Module) -> list[Any]:
    """Return the model's norms that `rms_norm` can compute."""
    return [
        module
        for module in model.modules()
        if f"{type(module).__module__}.{type(module).__name__}" in _FUSABLE and "forward" not in vars(module)
    ]


def rms_norm(norm: Any, states: Tensor) -> Tensor:
    """states: (..., width). Rounded once, at the end; the library also rounds before multiplying by the weight."""
    return F.rms_norm(states, norm.weight.shape, norm.weight.to(states.dtype), norm.variance_epsilon)


def fused_norms(norms: Sequence[Any]) -> AbstractContextManager[None]:
    """Compute these norms by `rms_norm` within the context."""
    return patched_forward([(norm, partial(rms_norm, norm)) for norm in norms])
