"""An adapter that was made ready computes what it computes otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from peft.tuners import lora
from torch import Tensor

from text2grad.models.loading import load_model
from text2grad.rollout.fast.lora import ready_adapters

IDS = torch.tensor([[5, 6, 7, 8], [9, 10, 11, 12]])


def adapted(tiny_model: Path, dtype: torch.dtype = torch.float32, **settings: Any) -> PeftModel:
    """With an adapter that has learned something."""
    torch.manual_seed(0)
    config = LoraConfig(r=4, lora_alpha=12, target_modules="all-linear", **settings)
    model = get_peft_model(load_model(tiny_model, dtype), config).eval()
    for name, parameter in model.named_parameters():
        if "lora_" in name:
            parameter.data = torch.randn_like(parameter, dtype=torch.float32) * 0.2
    assert isinstance(model, PeftModel)
    return model


def layers(model: PeftModel) -> list[lora.Linear]:
    return [module for module in model.modules() if isinstance(module, lora.Linear)]


def replaced(model: PeftModel) -> int:
    return sum("forward" in vars(layer) for layer in layers(model))


@torch.no_grad()
def logits(model: PeftModel) -> Tensor:
    found: Tensor = model(input_ids=IDS).logits
    return found


def test_what_is_ready_computes_the_same(tiny_model: Path) -> None:
    model = adapted(tiny_model)
    before = logits(model)
    with ready_adapters(model, torch.float32):
        assert replaced(model) == len(layers(model)) == 14
        torch.testing.assert_close(logits(model), before, atol=1e-5, rtol=1e-5)
    assert replaced(model) == 0
    assert torch.equal(logits(model), before)


def test_float32_adapters_of_bfloat16_weights_are_computed_in_bfloat16(tiny_model: Path) -> None:
    model = adapted(tiny_model, torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16):
        before = logits(model)
        with ready_adapters(model, torch.bfloat16):
            found = logits(model)
    assert found.dtype == before.dtype == torch.bfloat16
    torch.testing.assert_close(found, before, atol=0.05, rtol=0.05)


def test_an_adapter_that_is_off_stays_off(tiny_model: Path) -> None:
    model = adapted(tiny_model)
    with model.disable_adapter():
        plain = logits(model)
        with ready_adapters(model, torch.float32):
            assert torch.equal(logits(model), plain)
    assert not torch.allclose(plain, logits(model))


@pytest.mark.filterwarnings("ignore:`lora_bias=True` was passed")
@pytest.mark.parametrize("settings", [{"use_dora": True}, {"lora_bias": True}, {"lora_dropout": 0.1}])
def test_other_kinds_of_adapters_stay_as_they_are(tiny_model: Path, settings: dict[str, Any]) -> None:
    model = adapted(tiny_model, **settings)
    with ready_adapters(model, torch.float32):
        assert replaced(model) == 0


def test_a_layer_that_somebody_else_stands_in_for_is_left_to_them(tiny_model: Path) -> None:
    model = adapted(tiny_model)
    first: Any = layers(model)[0]
    first.forward = theirs = first.forward  # as hooks do that fetch weights when they are needed
    with ready_adapters(model, torch.float32):
        assert first.forward is theirs
    assert vars(first)["forward"] is theirs


def test_layers_are_their_own_again_after_an_error(tiny_model: Path) -> None:
    model = adapted(tiny_model)
    with pytest.raises(KeyError), ready_adapters(model, torch.float32):
        raise KeyError
    assert replaced(model) == 0
