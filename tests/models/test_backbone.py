"""The projected output of the backbone is the model's logits."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from text2grad.models.backbone import avoid_cudnn_attention, check_projection, get_backbone, get_projection, vocab_size

SIZES = {
    "vocab_size": 48,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 8,
}
FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {},
    "granite": {"logits_scaling": 0.2},
    "cohere": {"logit_scale": 3.0},
    "gemma2": {"final_logit_softcapping": 0.5},
}


def made(family: str, **settings: Any) -> Any:
    torch.manual_seed(0)
    ends = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    return AutoModelForCausalLM.from_config(AutoConfig.for_model(family, **SIZES, **ends, **settings)).eval()


@pytest.mark.parametrize("family", FAMILIES)
@torch.no_grad()
def test_families_that_scale_or_cap_their_logits(family: str) -> None:
    model = made(family, **FAMILIES[family])
    ids = torch.arange(12).view(2, 6)
    states = get_backbone(model)(input_ids=ids, use_cache=False)[0]
    expected = model(input_ids=ids).logits
    assert vocab_size(model) == expected.shape[-1]
    torch.testing.assert_close(get_projection(model)(states), expected)
    if family != "llama":
        assert not torch.allclose(model.get_output_embeddings()(states), expected, atol=1e-2)
    check_projection(model)


def test_attention_is_left_to_flash_kernels() -> None:
    torch.backends.cuda.enable_cudnn_sdp(True)
    avoid_cudnn_attention()
    assert not torch.backends.cuda.cudnn_sdp_enabled()
    assert torch.backends.cuda.flash_sdp_enabled()
