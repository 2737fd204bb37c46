"""The policy's weights under the names of the plain model, with its adapter merged on the fly.

For engines that sample from a copy: the policy's own weights are read, never changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from peft import PeftModel
from peft.tuners.lora import LoraLayer
from peft.tuners.tuners_utils import BaseTunerLayer
from peft.utils.other import AuxiliaryTrainingWrapper
from torch import Tensor, nn
from transformers import PreTrainedModel

from text2grad.errors import UserError


class BaseParameter(NamedTuple):
    """A parameter of the plain model: its name there, and the LoRA layer that adds to it."""

    name: str
    parameter: nn.Parameter
    lora_layer: Any | None


def base_parameters(model: PreTrainedModel | PeftModel) -> list[BaseParameter]:
    """Return every parameter of the plain model, with the shapes and dtypes that are sent. Tied weights appear once.

    Adapters other than plain LoRA are rejected, and so is one on a weight that is tied to another.
    """
    plain: Any = model.get_base_model() if isinstance(model, PeftModel) else model
    layers = {}
    for name, module in plain.named_modules():
        if isinstance(module, BaseTunerLayer | AuxiliaryTrainingWrapper):
            if not isinstance(module, LoraLayer) or module.lora_variant or any(module.lora_bias.values()):
                raise UserError(
                    f"the adapter on {name} is not plain LoRA and cannot be merged for vLLM; train plain LoRA or all "
                    f"weights, or set rollouts to transformers"
                )
            layers[f"{name}.base_layer.weight"] = module
    parameters = {name: parameter for name, parameter in plain.named_parameters() if ".lora_" not in name}
    if tied := sorted(layers.keys() - parameters.keys()):
        raise UserError(
            f"{tied[0].removesuffix('.base_layer.weight')} has an adapter but shares its weight with another layer; "
            f"remove it from target_modules, or set rollouts to transformers"
        )
    return [
        BaseParameter(name.replace(".base_layer.", "."), parameter, layers.get(name))
        for name, parameter in parameters.items()
    ]


def merged_weights(model: PreTrainedModel | PeftModel) -> Iterator[tuple[str, Tensor]]:
    """Yield (name, merged weight) one at a time.

    W + sum of the active adapters' scaling * B A, added in float32 and rounded once to the dtype of W.
    """
    for name, parameter, lora_layer in base_parameters(model):
        weight = parameter.detach()
        if lora_layer is not None:
            with torch.no_grad():
                deltas = [lora_layer.get_delta_weight(adapter).float() for adapter in lora_layer.active_adapters]
                weight = sum(deltas, start=weight.float()).to(weight.dtype)
        yield name, weight
