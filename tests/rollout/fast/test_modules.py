"""Patched modules compute what the original ones do, and are restored afterwards."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from peft.tuners import lora
from torch import Tensor, nn
from transformers.models.gemma.modeling_gemma import GemmaRMSNorm
from transformers.models.llama.modeling_llama import LlamaRMSNorm
from transformers.models.qwen3.modeling_qwen3 import Qwen3RMSNorm

from text2grad.models.loading import load_model
from text2grad.models.lora import disable_input_casts
from text2grad.rollout.fast.modules import (
    FUSABLE_NORMS,
    fusable_norms,
    fuse_modules,
    fused_norms,
    patched_forward,
    prepared_lora,
    rms_norm,
)

DEVICES = pytest.mark.parametrize(
    "device",
    ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))],
)
IDS = torch.tensor([[5, 6, 7, 8], [9, 10, 11, 12]])


def adapted(tiny_model: Path, dtype: torch.dtype = torch.float32, **settings: Any) -> PeftModel:
    """Return a model with a trained adapter."""
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


def logits_and_gradients(tiny_model: Path, dtype: torch.dtype, fused: bool, device: str) -> tuple[Tensor, Tensor]:
    """Return the logits, and all gradients of the adapter in one row, with gradient checkpointing."""
    model = adapted(tiny_model, dtype).train().to(device)
    disable_input_casts(model)
    model.gradient_checkpointing_enable({"use_reentrant": False})
    if fused:
        fuse_modules(model)
        assert replaced(model) == len(layers(model)) == 14
    with torch.autocast(device, torch.bfloat16, enabled=dtype != torch.float32):
        found = model(input_ids=IDS.to(device), use_cache=False).logits
    found.float().log_softmax(-1)[:, :, 7].sum().backward()
    return found.detach(), torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


@DEVICES
def test_fused_modules_have_the_same_logits_and_gradients(tiny_model: Path, device: str) -> None:
    found = (logits_and_gradients(tiny_model, torch.float32, fused, device) for fused in (True, False))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)


@DEVICES
def test_fused_modules_are_as_exact_as_the_library_in_bfloat16(tiny_model: Path, device: str) -> None:
    exact = logits_and_gradients(tiny_model, torch.float32, False, device)
    ours, theirs = (logits_and_gradients(tiny_model, torch.bfloat16, fused, device) for fused in (True, False))
    for mine, library, true in zip(ours, theirs, exact, strict=True):
        assert mine.dtype == library.dtype
        assert (mine - true).norm() < 1.2 * (library - true).norm() < 0.15 * true.norm()


def test_fused_adapters_can_be_switched_off_and_prepared(tiny_model: Path) -> None:
    model = adapted(tiny_model)
    with model.disable_adapter():
        plain = logits(model)
    before = logits(model)
    fuse_modules(model)
    with model.disable_adapter():
        torch.testing.assert_close(logits(model), plain, atol=1e-5, rtol=1e-5)
    within = [vars(layer)["forward"] for layer in layers(model)]
    with prepared_lora(model, torch.float32):
        assert all(vars(layer)["forward"] is not patch for layer, patch in zip(layers(model), within, strict=True))
        torch.testing.assert_close(logits(model), before, atol=1e-5, rtol=1e-5)
    assert [vars(layer)["forward"] for layer in layers(model)] == within


def test_prepared_lora_computes_the_same(tiny_model: Path) -> None:
    model = adapted(tiny_model)
    before = logits(model)
    with prepared_lora(model, torch.float32):
        assert replaced(model) == len(layers(model)) == 14
        torch.testing.assert_close(logits(model), before, atol=1e-5, rtol=1e-5)
    assert replaced(model) == 0
    assert torch.equal(logits(model), before)


def test_float32_adapters_of_bfloat16_weights_are_computed_in_bfloat16(tiny_model: Path) -> None:
    model = adapted(tiny_model, torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16):
        before = logits(model)
        with prepared_lora(model, torch.bfloat16):
            found = logits(model)
    assert found.dtype == before.dtype == torch.bfloat16
    torch.testing.assert_close(found, before, atol=0.05, rtol=0.05)


def test_a_disabled_adapter_stays_disabled(tiny_model: Path) -> None:
    model = adapted(tiny_model)
    with model.disable_adapter():
        plain = logits(model)
        with prepared_lora(model, torch.float32):
            assert torch.equal(logits(model), plain)
    assert not torch.allclose(plain, logits(model))


@pytest.mark.filterwarnings("ignore:`lora_bias=True` was passed")
@pytest.mark.parametrize("settings", [{"use_dora": True}, {"lora_bias": True}, {"lora_dropout": 0.1}])
def test_other_adapters_are_unchanged(tiny_model: Path, settings: dict[str, Any]) -> None:
    model = adapted(tiny_model, **settings)
    with prepared_lora(model, torch.float32):
        assert replaced(model) == 0


def test_a_layer_patched_by_another_library_is_unchanged(tiny_model: Path) -> None:
    model = adapted(tiny_model)
    first: Any = layers(model)[0]
    first.forward = theirs = first.forward  # as offloading hooks do
    with prepared_lora(model, torch.float32):
        assert first.forward is theirs
    assert vars(first)["forward"] is theirs


def test_lora_layers_are_restored_after_an_error(tiny_model: Path) -> None:
    model = adapted(tiny_model)
    with pytest.raises(KeyError), prepared_lora(model, torch.float32):
        raise KeyError
    assert replaced(model) == 0


def test_a_forward_is_patched_within_the_context() -> None:
    doubling, plain = nn.Identity(), nn.Identity()
    one = torch.ones(1)
    with patched_forward([(doubling, lambda x: 2 * x)]):
        assert (float(doubling(one)), float(plain(one))) == (2.0, 1.0)
    assert float(doubling(one)) == 1.0


def test_patched_modules_are_restored_after_an_error() -> None:
    module = nn.Identity()
    with pytest.raises(RuntimeError, match="lost"), patched_forward([(module, lambda x: 2 * x)]):
        raise RuntimeError("lost")
    assert "forward" not in vars(module)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.bfloat16, 2**-7)])
@pytest.mark.parametrize("family", FUSABLE_NORMS)
def test_a_fused_norm_computes_what_the_library_does(family: str, dtype: torch.dtype, tolerance: float) -> None:
    torch.manual_seed(0)
    module = importlib.import_module(f"transformers.models.{family}.modeling_{family}")
    norm: Any = getattr(module, FUSABLE_NORMS[family])(48, eps=1e-3).to(dtype)
    assert fusable_norms(norm) == [norm]
    torch.nn.init.normal_(norm.weight)
    states = torch.randn(3, 5, 48).to(dtype)
    found = rms_norm(norm, states)
    assert found.dtype == dtype
    torch.testing.assert_close(found, norm(states), atol=tolerance, rtol=tolerance)


def test_all_norms_of_a_llama_are_fused_within_the_context(tiny_model: Path) -> None:
    model = load_model(tiny_model).eval()
    norms = fusable_norms(model)
    assert len(norms) == 2 * model.config.num_hidden_layers + 1
    ids = torch.arange(12).view(2, 6)
    with torch.no_grad():
        before = model(ids).logits
        with fused_norms(norms):
            assert fusable_norms(model) == [], "a patched norm is not patched again"
            within = model(ids).logits
    torch.testing.assert_close(within, before, atol=1e-5, rtol=1e-5)
    assert not any("forward" in vars(norm) for norm in norms)


def test_norms_are_restored_after_an_error(tiny_model: Path) -> None:
    norms = fusable_norms(load_model(tiny_model))
    with pytest.raises(RuntimeError, match="lost"), fused_norms(norms):
        raise RuntimeError("lost")
    assert not any("forward" in vars(norm) for norm in norms)


def test_other_norms_are_unchanged() -> None:
    class Mine(LlamaRMSNorm):
        def forward(self, hidden_states: Tensor) -> Tensor:
            return hidden_states

    norms: list[Any] = [LlamaRMSNorm(8), Qwen3RMSNorm(8), GemmaRMSNorm(8), Mine(8), torch.nn.LayerNorm(8)]
    assert fusable_norms(torch.nn.Sequential(*norms)) == norms[:2]
