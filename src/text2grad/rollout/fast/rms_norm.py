"""Root-mean-square norms in one kernel. The library's take seven, and a step of a small model is mostly kernels."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import torch.nn.functional as F
from torch import Tensor
from transformers.models.llama.modeling_llama import LlamaRMSNorm

from text2grad.rollout.fast.patching import patched_forward


def rms_norms(model: Any) -> list[Any]:
    """Those of the model's norms that `rms_norm` can compute: the library gives most families the code of Llama's."""
    return [module for module in model.modules() if _code(type(module)) == _LLAMA and "forward" not in vars(module)]


def rms_norm(norm: Any, states: Tensor) -> Tensor:
    """states: (..., width). Rounded once, at the end; the library rounds before it multiplies by the weight, too."""
    return F.rms_norm(states, norm.weight.shape, norm.weight.to(states.dtype), norm.variance_epsilon)


def fused(norms: Sequence[Any]) -> AbstractContextManager[None]:
    """These norms, found by `rms_norms`, compute by `rms_norm` for a while."""
    return patched_forward([(norm, partial(rms_norm, norm)) for norm in norms])


def _code(kind: Any) -> tuple[Any, ...] | None:
    code = getattr(kind.forward, "__code__", None)
    return (code.co_code, code.co_names, code.co_consts) if code else None


_LLAMA = _code(LlamaRMSNorm)
