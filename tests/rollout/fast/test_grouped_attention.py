"""Grouped attention of one token equals SDPA."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from peft import LoraConfig, get_peft_model
from transformers import LlamaForCausalLM

from text2grad.models.loading import load_model
from text2grad.rollout.fast.grouped_attention import (
    NAME,
    additive_mask,
    grouped_attention,
    supports_grouped_attention,
    use_grouped_attention,
)


@pytest.mark.parametrize(("heads", "groups"), [(6, 2), (4, 4), (4, 1)])
def test_it_equals_sdpa(heads: int, groups: int) -> None:
    torch.manual_seed(0)
    query, key, value = torch.randn(3, heads, 1, 8), torch.randn(3, groups, 11, 8), torch.randn(3, groups, 11, 8)
    mask = torch.rand(3, 1, 1, 11) < 0.6
    mask[..., 0] = True
    found, _ = grouped_attention(None, query, key, value, additive_mask(mask[:, 0, 0], torch.float32), scaling=0.3)
    plain = F.scaled_dot_product_attention(query, key, value, mask, scale=0.3, enable_gqa=True)
    torch.testing.assert_close(found, plain.transpose(1, 2), atol=1e-6, rtol=1e-5)


def test_values_may_be_of_another_width_and_masks_of_each_head() -> None:
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 4, 1, 8), torch.randn(3, 2, 11, 8), torch.randn(3, 2, 11, 5)
    mask = torch.randn(3, 4, 1, 11)
    found, _ = grouped_attention(None, query, key, value, mask)
    plain = F.scaled_dot_product_attention(query, key, value, mask, enable_gqa=True)
    torch.testing.assert_close(found, plain.transpose(1, 2), atol=1e-6, rtol=1e-5)


def test_attention_is_replaced_only_within_the_context() -> None:
    config = SimpleNamespace(_attn_implementation="sdpa")
    with use_grouped_attention(config):
        assert config._attn_implementation == NAME
    assert config._attn_implementation == "sdpa"


def test_only_sdpa_is_replaced(tiny_model: Path) -> None:
    assert supports_grouped_attention(load_model(tiny_model))
    assert supports_grouped_attention(get_peft_model(load_model(tiny_model), LoraConfig(target_modules=["q_proj"])))
    assert not supports_grouped_attention(LlamaForCausalLM.from_pretrained(tiny_model, attn_implementation="eager"))
