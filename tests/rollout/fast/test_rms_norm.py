"""A norm in one kernel computes what the library's does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers.models.gemma.modeling_gemma import GemmaRMSNorm
from transformers.models.llama.modeling_llama import LlamaRMSNorm
from transformers.models.qwen3.modeling_qwen3 import Qwen3RMSNorm

from text2grad.models.loading import load_model
from text2grad.rollout.fast.rms_norm import fused, rms_norm, rms_norms


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.bfloat16, 2**-7)])
def test_it_is_the_librarys_norm(dtype: torch.dtype, tolerance: float) -> None:
    torch.manual_seed(0)
    norm: Any = LlamaRMSNorm(48, eps=1e-3).to(dtype)
    torch.nn.init.normal_(norm.weight)
    states = torch.randn(3, 5, 48).to(dtype)
    found = rms_norm(norm, states)
    assert found.dtype == dtype
    torch.testing.assert_close(found, norm(states), atol=tolerance, rtol=tolerance)


def test_all_norms_of_a_llama_are_found_and_replaced_only_for_a_while(tiny_model: Path) -> None:
    model = load_model(tiny_model).eval()
    norms = rms_norms(model)
    assert len(norms) == 2 * model.config.num_hidden_layers + 1
    ids = torch.arange(12).view(2, 6)
    with torch.no_grad():
        before = model(ids).logits
        with fused(norms):
            assert rms_norms(model) == [], "what stands in for a norm is not replaced once more"
            within = model(ids).logits
    torch.testing.assert_close(within, before, atol=1e-5, rtol=1e-5)
    assert not any("forward" in vars(norm) for norm in norms)


def test_norms_are_the_librarys_again_after_an_error(tiny_model: Path) -> None:
    norms = rms_norms(load_model(tiny_model))
    with pytest.raises(RuntimeError, match="lost"), fused(norms):
        raise RuntimeError("lost")
    assert not any("forward" in vars(norm) for norm in norms)


def test_a_norm_of_other_code_stays_as_it_is() -> None:
    class Mine(LlamaRMSNorm):
        def forward(self, hidden_states: Tensor) -> Tensor:
            return hidden_states

    norms: list[Any] = [LlamaRMSNorm(8), Qwen3RMSNorm(8), GemmaRMSNorm(8), Mine(8), torch.nn.LayerNorm(8)]
    assert rms_norms(torch.nn.Sequential(*norms)) == norms[:2]
