"""The backbone of a causal language model, compiled or not, and its projection to logits.

They are called separately, so that logits exist for some tokens only.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from typing import Any

import torch
from peft import PeftModel
from torch import Tensor, nn
from transformers import PreTrainedModel

from text2grad.errors import UserError
from text2grad.models.logprobs import Projection


def get_backbone(model: PreTrainedModel | PeftModel) -> Any:
    """Return the model without its output layer."""
    causal = model.get_base_model() if isinstance(model, PeftModel) else model
    return causal.base_model


def get_projection(model: PreTrainedModel | PeftModel) -> Projection:
    """Return the function hidden states (..., hidden) -> logits: the output layer, and the family's scale or cap."""
    layer: Any = model.get_output_embeddings()
    config = model.config
    factor = (getattr(config, "logit_scale", None) or 1.0) / (getattr(config, "logits_scaling", None) or 1.0)
    cap = getattr(config, "final_logit_softcapping", None)

    def project(states: Tensor) -> Tensor:
        logits: Tensor = layer(states)
        if factor != 1.0:
            logits = logits * factor
        return logits if cap is None else torch.tanh(logits / cap) * cap

    return project


def vocab_size(model: PreTrainedModel | PeftModel) -> int:
    """Return the number of logits per token, padding of the output layer included."""
    layer: Any = model.get_output_embeddings()
    return len(layer.weight)


def hidden_size(model: PreTrainedModel | PeftModel) -> int:
    """Return the width of the backbone's output, which in some families is not config.hidden_size."""
    layer: Any = model.get_output_embeddings()
    return int(layer.weight.shape[1])


@torch.no_grad()
def check_projection(model: PreTrainedModel | PeftModel) -> None:
    """Reject models whose logits are not `get_projection` of their backbone's output."""
    ids = torch.arange(4, device=model.device).unsqueeze(0)
    expected = model(input_ids=ids, use_cache=False).logits.float()
    backbone = get_backbone(model)
    found = get_projection(model)(backbone(input_ids=ids, use_cache=False)[0]).float()
    if not torch.allclose(expected, found, rtol=1e-2, atol=1e-2):
        raise UserError(
            f"{type(backbone).__name__}: its logits are not those of its output layer, so it is not supported; use "
            f"another model"
        )


def avoid_cudnn_attention() -> None:
    """Leave attention to flash kernels, in this process.

    Torch 2.11 and later prefer cuDNN's on Hopper GPUs. It plans on the host, for tens of milliseconds for every new
    shape and in every thread, and keeps all plans; batches of texts have new shapes in every step.
    """
    torch.backends.cuda.enable_cudnn_sdp(False)


class BackboneCompiler:
    """Returns a backbone as it is or compiled, at its first use.

    Compiled backbones are cached here instead of being submodules of the policy, where they would put `_orig_mod.` into
    the names of the weights, and a checkpoint would no longer fit a run without compilation.
    """

    def __init__(self, enabled: bool) -> None:
        if enabled and not has_cxx_compiler():
            raise UserError("torch_compile is set but there is no C++ compiler; install g++, or unset torch_compile")
        self._enabled = enabled
        self._compiled: dict[nn.Module, Callable[..., Any]] = {}

    def get(self, backbone: nn.Module) -> Callable[..., Any]:
        """Return a callable with the backbone's signature.

        Shapes are symbolic, so batches of another size need no new graph. There is one graph for scoring, one for the
        reference and one for the update, and the same again for batches of a single row.
        """
        if not self._enabled:
            return backbone
        if backbone not in self._compiled:
            self._compiled[backbone] = torch.compile(backbone, dynamic=True)
        return self._compiled[backbone]


def has_cxx_compiler() -> bool:
    """Return whether a C++ compiler is installed: CXX, or one of the usual names."""
    return any(shutil.which(name) for name in (os.environ.get("CXX", "c++"), "g++", "clang++"))
