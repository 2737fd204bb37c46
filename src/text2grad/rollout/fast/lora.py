"""Adapters while tokens are sampled: the same arithmetic in fewer steps.

A step of a small model is mostly overhead. PEFT casts, scales and adds in steps of their own for every layer and token,
and adding an adapter to the weights themselves would lose in bfloat16 what makes it differ from them.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch
import torch.nn.functional as F
from peft.tuners import lora
from torch import Tensor, nn

from text2grad.rollout.fast.patching import Forward, patched_forward


def ready_adapters(model: nn.Module, dtype: torch.dtype) -> AbstractContextManager[None]:
    """Adapters are cast and scaled once, not for every token, for as long as they do not change.

    dtype: what layers are computed in. Adapters of other kinds than plain LoRA, and those that are off, stay as they
    are.
    """
    return patched_forward([(module, _ready(module, dtype)) for module in model.modules() if _is_plain(module)])


def _is_plain(module: Any) -> bool:
    if type(module) is not lora.Linear or "forward" in vars(module):  # somebody else stands in for it
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


def _ready(layer: Any, dtype: torch.dtype) -> Forward:
    base = layer.get_base_layer()
    (name,) = layer.active_adapters
    down = layer.lora_A[name].weight.detach().to(dtype)
    up = (layer.lora_B[name].weight.detach() * layer.scaling[name]).to(dtype)

    def forward(x: Tensor) -> Tensor:
        adapted: Tensor = base(x) + F.linear(F.linear(x, down), up)
        return adapted

    return forward
