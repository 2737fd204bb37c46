"""Fused decoder layers compute what those of the library do, and are left out where they would not."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM

from text2grad.models.batching import pad_left
from text2grad.rollout.decoders import PlainDecoder, prefill
from text2grad.rollout.fast import fused_layers as module
from text2grad.rollout.fast.decoders import GraphDecoder
from text2grad.rollout.fast.fused_layers import FUSABLE_FAMILIES, fused_layers, rotate
from text2grad.rollout.fast.modules import fuse_modules, patched_forward, prepared_lora

PROMPTS = [[5, 6, 7, 8], [9, 10], [11, 12, 13]]
TOKENS = torch.tensor([[3, 4, 5], [6, 7, 8], [9, 10, 11], [12, 13, 14]])
SIZES = {
    "vocab_size": 64,
    "hidden_size": 48,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "sliding_window": None,
}
SETTINGS = {"llama": {"attention_bias": True, "mlp_bias": True}}
DEVICES = pytest.mark.parametrize(
    "device",
    ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))],
)
FAMILIES = pytest.mark.parametrize("family", FUSABLE_FAMILIES)


def small_model(family: str, adapter: bool = False, dtype: torch.dtype = torch.float32, **settings: Any) -> Any:
    """Return a random model whose norms, biases and adapter are random too."""
    torch.manual_seed(0)
    config = AutoConfig.for_model(family, **{**SIZES, **SETTINGS.get(family, {}), **settings})
    model = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")
    if adapter:
        model = get_peft_model(model, LoraConfig(r=4, lora_alpha=12, target_modules="all-linear"))
    for name, parameter in model.named_parameters():
        if "lora_" in name or parameter.ndim == 1:
            parameter.data = 0.3 * torch.randn_like(parameter) + ("norm" in name)
    model = model.eval()
    return model if adapter else model.to(dtype)


@torch.no_grad()
def decoded(model: Any, fixed: bool) -> list[Tensor]:
    """Return the logits of a few steps."""
    ids, mask = pad_left(PROMPTS, pad_id=0, device=model.device)
    cache, rows, steps = prefill(model, ids, mask)[0], torch.arange(3, device=model.device), TOKENS.to(model.device)
    if not fixed:
        plain = PlainDecoder(model, cache, mask, rows)
        return [plain.step(tokens) for tokens in steps]
    decoder = GraphDecoder(model, cache, mask, rows, len(steps), capture=model.device.type == "cuda")
    assert len(decoder._layers) == SIZES["num_hidden_layers"] + 1
    return [decoder.step(tokens).clone() for tokens in steps]


def check_same(model: Any, tolerance: float = 1e-5) -> None:
    for ours, plain in zip(decoded(model, True), decoded(model, False), strict=True):
        torch.testing.assert_close(ours, plain, atol=tolerance, rtol=tolerance)


def check_as_exact(model: Any, exact: list[Tensor]) -> None:
    """Whether the logits are as near to those in float32 as the library's are."""
    ours, plain, true = (torch.cat(steps) for steps in (decoded(model, True), decoded(model, False), exact))
    assert ours.dtype == plain.dtype
    assert (ours - true).norm() < 1.3 * (plain - true).norm() < 0.1 * true.norm()


@FAMILIES
def test_layers_are_those_of_the_library(family: str) -> None:
    library = importlib.import_module(f"transformers.models.{family}.modeling_{family}")
    assert type(small_model(family).base_model.layers[0]) is getattr(library, f"{FUSABLE_FAMILIES[family]}DecoderLayer")
    check_same(small_model(family))


@FAMILIES
@DEVICES
def test_with_an_adapter_that_is_prepared(device: str, family: str) -> None:
    """On a GPU in captured graphs."""
    model = small_model(family, adapter=True).to(device)
    with prepared_lora(model, torch.float32):
        check_same(model, 1e-5 if device == "cpu" else 1e-3)


def test_with_an_adapter_that_is_off_or_on_some_layers_only() -> None:
    model = small_model("llama", adapter=True)
    with prepared_lora(model, torch.float32):
        adapted = decoded(model, True)
    with model.disable_adapter(), prepared_lora(model, torch.float32):
        check_same(model)
        assert not torch.allclose(decoded(model, True)[0], adapted[0], atol=1e-2)
    torch.manual_seed(1)
    config = LoraConfig(r=4, target_modules=["q_proj", "v_proj", "up_proj"], init_lora_weights=False)
    partly = get_peft_model(small_model("llama"), config).eval()
    with prepared_lora(partly, torch.float32):
        check_same(partly)


@contextmanager
def autocast() -> Iterator[None]:
    with torch.autocast("cpu", torch.bfloat16):
        yield


@FAMILIES
def test_float32_weights_under_autocast(family: str) -> None:
    """As all weights are trained: the residual stream stays float32."""
    model = small_model(family)
    exact = decoded(model, False)
    with autocast():
        check_as_exact(model, exact)


@FAMILIES
def test_bfloat16_weights_under_fused_modules(family: str) -> None:
    """As an adapter is trained, with its own fused modules, on frozen weights in bfloat16."""
    exact = small_model(family, adapter=True)
    with prepared_lora(exact, torch.float32):
        true = decoded(exact, False)
    model = small_model(family, adapter=True)
    for name, parameter in model.named_parameters():
        if "lora_" not in name:
            parameter.data = parameter.data.bfloat16()
    fuse_modules(model)
    with autocast(), prepared_lora(model, torch.bfloat16):
        check_as_exact(model, true)


def test_layers_are_left_as_they_were() -> None:
    model = small_model("llama")
    decoded(model, True)
    assert all("forward" not in vars(layer) for layer in model.modules())


def test_rotation_by_hand() -> None:
    """Half a turn of the first pair, a quarter turn of the second; pairs are (0, 2) and (1, 3)."""
    cosines, sines = torch.tensor([[[-1.0, 0.0, -1.0, 0.0]]]), torch.tensor([[[0.0, -1.0, 0.0, 1.0]]])
    assert rotate(torch.tensor([[[1.0, 2.0, 3.0, 4.0]]]), cosines, sines).tolist() == [[[-1.0, -4.0, -3.0, 2.0]]]


def test_what_cannot_be_fused_is_not() -> None:
    dtype = torch.float32
    assert fused_layers(small_model("llama", hidden_act="gelu"), dtype) == []
    sizes = {name: value for name, value in SIZES.items() if name != "sliding_window"}
    gemma = AutoModelForCausalLM.from_config(AutoConfig.for_model("gemma", **sizes))
    assert fused_layers(gemma, dtype) == []
    assert fused_layers(small_model("llama", adapter=True), dtype) == [], "an adapter that is not prepared"
    model = small_model("qwen3")
    layer = model.model.layers[1]
    names = (
        "",
        "mlp",
        "mlp.act_fn",
        "mlp.up_proj",
        "self_attn",
        "self_attn.q_norm",
        "self_attn.o_proj",
        "input_layernorm",
    )
    for part in map(layer.get_submodule, names):
        with patched_forward([(part, lambda x: x)]):
            assert fused_layers(model, dtype) == []
        for register in (part.register_forward_hook, part.register_forward_pre_hook):
            handle = register(lambda *_: None)
            assert fused_layers(model, dtype) == []
            handle.remove()
    assert len(fused_layers(model, dtype)) == 3
    layer.mlp = torch.nn.Identity()
    assert fused_layers(model, dtype) == []


def test_copies_take_a_small_part_of_the_memory_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda _: 300)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda _: 200)
    for free, fits in ((350, True), (349, False)):
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _, free=free: (free, 0))
        assert module._fits(100, 50, torch.device("cuda")) is fits


def test_weights_are_copied_where_they_are_stacked_or_of_another_dtype() -> None:
    layer = small_model("llama").model.layers[0]
    stacked = 48 * (6 * 16 + 2 * 2 * 16) + 2 * 48 * 96
    assert module._copied_bytes(layer, torch.float32) == 4 * stacked
    assert module._copied_bytes(layer, torch.bfloat16) == 2 * (stacked + 48 * 6 * 16 + 48 * 96)
