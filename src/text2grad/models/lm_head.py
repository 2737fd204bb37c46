"""A model in two parts: its trunk, and what makes logits of its states. So logits can be had for some tokens only."""

from __future__ import annotations

from typing import Any

import torch
from peft import PeftModel
from torch import Tensor
from transformers import PreTrainedModel

from text2grad.errors import UserError
from text2grad.models.logprobs import Project


def trunk(model: PreTrainedModel | PeftModel) -> Any:
    """All but the output layer."""
    causal = model.get_base_model() if isinstance(model, PeftModel) else model
    return causal.base_model


def output(model: PreTrainedModel | PeftModel) -> Project:
    """States of the trunk, (..., width), to logits: the output layer, and the scale or the cap that a family adds."""
    layer: Any = model.get_output_embeddings()
    given = model.config
    factor = (getattr(given, "logit_scale", None) or 1.0) / (getattr(given, "logits_scaling", None) or 1.0)
    cap = getattr(given, "final_logit_softcapping", None)

    def project(states: Tensor) -> Tensor:
        logits: Tensor = layer(states)
        if factor != 1.0:
            logits = logits * factor
        return logits if cap is None else torch.tanh(logits / cap) * cap

    return project


def vocabulary_of(model: PreTrainedModel | PeftModel) -> int:
    """How many logits there are for a token; padding of the output layer included."""
    layer: Any = model.get_output_embeddings()
    return len(layer.weight)


def width_of(model: PreTrainedModel | PeftModel) -> int:
    """Of the trunk's states; in some families it is not the hidden size of their layers."""
    layer: Any = model.get_output_embeddings()
    return int(layer.weight.shape[1])


@torch.no_grad()
def check_output(model: PreTrainedModel | PeftModel) -> None:
    """Refuse models whose logits are not what `output` makes of their trunk's states."""
    ids = torch.arange(4, device=model.device).unsqueeze(0)
    whole = model(input_ids=ids, use_cache=False).logits.float()
    ours = output(model)(trunk(model)(input_ids=ids, use_cache=False)[0]).float()
    if not torch.allclose(whole, ours, rtol=1e-2, atol=1e-2):
        kind = type(trunk(model)).__name__
        raise UserError(
            f"{kind}: its logits are more than its output layer in a way that is not known here; use another model"
        )
