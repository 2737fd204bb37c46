from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig
from transformers import OPTConfig, OPTForCausalLM

from text2grad.errors import UserError
from text2grad.models.batching import pad_right
from text2grad.models.loading import load_model
from text2grad.models.policy import Policy

LORA = LoraConfig(r=4, lora_alpha=8, target_modules="all-linear")
CPU = torch.device("cpu")
PROMPTS, COMPLETIONS = [[10, 11, 12], [20]], [[30, 31], [40, 41, 42, 1]]


def plain_logprobs(
    model: torch.nn.Module, prompt: list[int], completion: list[int], temperature: float
) -> torch.Tensor:
    logits = model(input_ids=torch.tensor([[*prompt, *completion]])).logits[0].float() / temperature
    logprobs = torch.log_softmax(logits, -1)
    places = range(len(prompt) - 1, len(prompt) + len(completion) - 1)
    return torch.stack([logprobs[place, token] for place, token in zip(places, completion, strict=True)])


def nudge(policy: Policy) -> None:
    with torch.no_grad():
        for parameter in policy.trainable().values():
            parameter.add_(0.05 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(3)))


@pytest.mark.parametrize("lora", [LORA, None])
def test_padded_scores_are_those_of_each_row_alone(tiny_model: Path, lora: LoraConfig | None) -> None:
    policy = Policy(load_model(tiny_model), lora)
    scores = policy(pad_right(PROMPTS, COMPLETIONS, CPU), temperature=0.7)
    for row, (prompt, completion) in enumerate(zip(PROMPTS, COMPLETIONS, strict=True)):
        alone = plain_logprobs(policy.model, prompt, completion, 0.7)
        torch.testing.assert_close(scores.logprobs[row, : len(completion)], alone, atol=1e-5, rtol=0)
        assert not scores.logprobs[row, len(completion) :].any()


@pytest.mark.parametrize("lora", [LORA, None])
def test_reference_is_the_policy_at_step_zero(tiny_model: Path, lora: LoraConfig | None) -> None:
    policy = Policy(load_model(tiny_model), lora)
    batch = pad_right(PROMPTS, COMPLETIONS, CPU)
    at_start = policy(batch, 1.0).logprobs
    nudge(policy)
    assert not torch.allclose(policy(batch, 1.0).logprobs, at_start, atol=1e-3)
    torch.testing.assert_close(policy(batch, 1.0, reference=True).logprobs, at_start)


def test_the_reference_of_a_model_in_bfloat16_is_the_policy_at_step_zero(tiny_model: Path) -> None:
    policy = Policy(load_model(tiny_model, torch.bfloat16)).eval()
    batch = pad_right(PROMPTS, COMPLETIONS, CPU)
    own, reference = (policy(batch, temperature=0.7, reference=which).logprobs for which in (False, True))
    assert torch.equal(own, reference)


def test_an_adapter_that_was_trained_before_is_part_of_the_reference(tiny_model: Path, tmp_path: Path) -> None:
    from peft import PeftModel

    earlier = Policy(load_model(tiny_model), LORA)
    nudge(earlier)
    earlier.model.save_pretrained(tmp_path)
    batch = pad_right(PROMPTS, COMPLETIONS, CPU)
    policy = Policy(PeftModel.from_pretrained(load_model(tiny_model), tmp_path, is_trainable=True))
    reference = policy(batch, 1.0, reference=True).logprobs
    torch.testing.assert_close(reference, earlier(batch, 1.0).logprobs, atol=1e-4, rtol=0)


def test_an_adapter_upon_an_adapter_could_not_be_saved_and_is_refused(tiny_model: Path, tmp_path: Path) -> None:
    from peft import PeftModel

    Policy(load_model(tiny_model), LORA).model.save_pretrained(tmp_path)
    trainable = PeftModel.from_pretrained(load_model(tiny_model), tmp_path, is_trainable=True)
    for model, lora in ((trainable, LORA), (load_model(tmp_path), LORA), (load_model(tmp_path), None)):
        with pytest.raises(UserError, match=r"already has an adapter.*text2grad export"):
            Policy(model, lora)


def test_a_model_that_cannot_be_trained_is_refused(tiny_model: Path, tmp_path: Path) -> None:
    from peft import PeftModel

    Policy(load_model(tiny_model), LORA).model.save_pretrained(tmp_path)
    with pytest.raises(UserError, match="no weight of the model can be trained"):
        Policy(PeftModel.from_pretrained(load_model(tiny_model), tmp_path))


@pytest.mark.parametrize(
    ("more", "is_copied"), [({}, False), ({"modules_to_save": ["lm_head"]}, True), ({"use_dora": True}, True)]
)
def test_only_plain_adapters_are_switched_off_for_the_reference(
    tiny_model: Path, more: dict[str, Any], is_copied: bool
) -> None:
    policy = Policy(load_model(tiny_model), LoraConfig(r=2, target_modules=["q_proj"], **more))
    assert policy.has_reference_copy == is_copied


def test_states_may_be_narrower_than_the_layers() -> None:
    config = OPTConfig(
        vocab_size=64, hidden_size=16, ffn_dim=32, num_hidden_layers=1, num_attention_heads=2, word_embed_proj_dim=8
    )
    policy = Policy(OPTForCausalLM(config))
    assert policy(pad_right(PROMPTS, COMPLETIONS, CPU), 1.0).values.shape == (len(PROMPTS), max(map(len, COMPLETIONS)))


def test_values_start_at_zero_and_read_the_state_before_the_token(tiny_model: Path) -> None:
    policy = Policy(load_model(tiny_model), LORA)
    batch = pad_right([[10, 11]], [[30, 31]], CPU)
    assert not policy(batch, 1.0).values.any()
    torch.nn.init.normal_(policy.value_head.weight)
    other_token = pad_right([[10, 11]], [[99, 31]], CPU)
    values, changed = policy(batch, 1.0).values[0], policy(other_token, 1.0).values[0]
    assert values[0] == changed[0], "the value of a token does not know the token"
    assert values[1] != changed[1]


def test_trained_weights_are_float32_and_frozen_ones_are_left_alone(tiny_model: Path) -> None:
    policy = Policy(load_model(tiny_model, torch.bfloat16), LORA)
    assert {p.dtype for p in policy.trainable().values()} == {torch.float32}
    frozen = {p.dtype for p in policy.parameters() if not p.requires_grad}
    assert frozen == {torch.bfloat16}
    assert {p.dtype for p in Policy(load_model(tiny_model, torch.bfloat16)).trainable().values()} == {torch.float32}


def test_no_kind_of_dropout_is_left_in_training() -> None:
    config = OPTConfig(
        vocab_size=64, hidden_size=16, ffn_dim=32, num_hidden_layers=1, num_attention_heads=2, word_embed_proj_dim=16
    )
    policy = Policy(OPTForCausalLM(config)).train()  # its rates are handed to functions, not to modules
    batch = pad_right(PROMPTS, COMPLETIONS, CPU)
    torch.testing.assert_close(policy(batch, 1.0).logprobs, policy(batch, 1.0).logprobs, rtol=0, atol=0)


def test_a_model_whose_logits_are_more_than_its_output_layer_is_refused(tiny_model: Path) -> None:
    model = load_model(tiny_model)
    forward = model.forward

    def soft_capped(**inputs: object) -> object:
        out = forward(**inputs)
        out.logits = 0.01 * torch.tanh(out.logits)
        return out

    model.forward = soft_capped
    with pytest.raises(UserError, match="not those of its output layer"):
        Policy(model, LORA)
