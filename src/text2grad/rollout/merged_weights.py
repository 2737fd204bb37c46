"""The weights of a policy under the names of the plain model, with its adapter merged on the fly.

For engines that sample from a copy: the policy's own weights are read, never changed, so nothing drifts.
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


class Entry(NamedTuple):
    """A weight of the plain model: its name there, the parameter, and the adapter's layer that adds to it."""

    name: str
    parameter: nn.Parameter
    layer: Any | None


def entries(model: PreTrainedModel | PeftModel) -> list[Entry]:
    """Every weight of the plain model, shapes and dtypes as they are sent. Tied weights appear once.

    Adapters other than plain LoRA are refused, and so is one on a weight that is tied to another.
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
            f"leave it out of target_modules, or set rollouts to transformers"
        )
    return [
        Entry(name.replace(".base_layer.", "."), parameter, layers.get(name)) for name, parameter in parameters.items()
    ]


@torch.no_grad()
def merged(entry: Entry) -> Tensor:
    """W + sum of the active adapters' scaling * B A, added in float32 and rounded once to the dtype of W."""
    weight = entry.parameter.detach()
    if entry.layer is None:
        return weight
    total = weight.float()
    for adapter in entry.layer.active_adapters:
        total = total + entry.layer.get_delta_weight(adapter).float()
    return total.to(weight.dtype)


def merged_weights(model: PreTrainedModel | PeftModel) -> Iterator[tuple[str, Tensor]]:
    """(name, weight) of each, one at a time."""
    for entry in entries(model):
        yield entry.name, merged(entry)
