"""An adapter merged on the fly is the adapter."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from peft import LoraConfig, get_peft_model

from text2grad.errors import UserError
from text2grad.models.loading import load_model
from text2grad.models.policy import Policy
from text2grad.rollout.merged_weights import merged_weights

IDS = torch.tensor([[5, 6, 7, 8, 9]])


def disturbed(policy: Policy) -> Policy:
    """The same policy after some training."""
    with torch.no_grad():
        for parameter in policy.trainable().values():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    return policy


@pytest.mark.parametrize("lora", [LoraConfig(r=4, lora_alpha=8, target_modules="all-linear"), None])
def test_a_plain_model_with_these_weights_is_the_policy(tiny_model: Path, lora: LoraConfig | None) -> None:
    policy = disturbed(Policy(load_model(tiny_model), lora))
    before = {name: tensor.clone() for name, tensor in policy.state_dict().items()}
    plain = load_model(tiny_model)
    sent = dict(merged_weights(policy.model))
    assert list(sent) == [name for name, _ in plain.named_parameters()]
    plain.load_state_dict(sent, strict=False)
    with torch.no_grad():
        torch.testing.assert_close(plain(IDS).logits, policy.model(IDS).logits, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(policy.state_dict(), before, rtol=0, atol=0)


def test_a_merged_weight_keeps_the_models_dtype(tiny_model: Path) -> None:
    policy = Policy(load_model(tiny_model, torch.bfloat16), LoraConfig(r=4, target_modules="all-linear"))
    assert {tensor.dtype for _, tensor in merged_weights(disturbed(policy).model)} == {torch.bfloat16}


@pytest.mark.parametrize(
    ("settings", "culprit"),
    [
        ({"target_modules": "all-linear", "use_dora": True}, "is not plain LoRA"),
        ({"target_modules": ["q_proj"], "modules_to_save": ["lm_head"]}, "adapter on lm_head is not plain LoRA"),
    ],
)
def test_what_cannot_be_merged_is_refused(tiny_model: Path, settings: dict[str, object], culprit: str) -> None:
    model = get_peft_model(load_model(tiny_model), LoraConfig(r=4, **settings))
    with pytest.raises(UserError, match=culprit):
        list(merged_weights(model))


@pytest.mark.filterwarnings("ignore:Model has `tie_word_embeddings=True`")  # peft's own warning of the same danger
def test_an_adapter_on_a_tied_weight_is_refused(tiny_model: Path) -> None:
    model = load_model(tiny_model)
    model.config.tie_word_embeddings = True
    model.lm_head.weight = model.model.embed_tokens.weight
    adapted = get_peft_model(model, LoraConfig(r=4, target_modules=["lm_head"]))
    with pytest.raises(UserError, match="lm_head has an adapter but shares its weight"):
        list(merged_weights(adapted))
