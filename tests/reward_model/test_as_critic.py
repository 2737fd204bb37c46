"""The optimiser takes the reward model like any other critic."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from peft import LoraConfig
from reward_support import tiny_reward_model
from support import PROMPTS, Seen

from text2grad import Text2GradConfig, Text2GradTrainer
from text2grad.reward_model.feedback import FeedbackSettings


@pytest.mark.parametrize(
    "feedback",
    [FeedbackSettings(), FeedbackSettings(rewards="spans"), FeedbackSettings(method="generative")],
    ids=["graded", "spans", "generative"],
)
def test_a_policy_is_trained_with_the_reward_model(
    tiny_model: Path, tmp_path: Path, feedback: FeedbackSettings
) -> None:
    critic = tiny_reward_model(tiny_model, feedback=feedback)
    critic_weights = {name: tensor.clone() for name, tensor in critic.network.state_dict().items()}
    seen = Seen()
    trainer = Text2GradTrainer(
        model=tiny_model,
        critic=critic,
        args=Text2GradConfig(
            output_dir=tmp_path / "run",
            max_steps=2,
            per_device_train_batch_size=4,
            max_completion_length=10,
            learning_rate=1e-2,
            bf16=False,
        ),
        train_dataset=PROMPTS,
        peft_config=LoraConfig(r=4, lora_alpha=8, target_modules="all-linear"),
        callbacks=[seen],
    )
    before = {name: parameter.detach().clone() for name, parameter in trainer.policy.trainable().items()}
    trainer.train()
    assert [step["critic/failed"] for step in seen.steps] == [0, 0]
    samples = [json.loads(line) for line in (tmp_path / "run" / "samples.jsonl").read_text().splitlines()]
    tokens = [token["reward"] for sample in samples for token in sample["tokens"]]
    if feedback.method == "head":
        assert any(tokens)
        assert not all(reward == tokens[0] for reward in tokens), "words differ"
        assert any(not torch.equal(p.detach(), before[name]) for name, p in trainer.policy.trainable().items())
    for name, tensor in critic.network.state_dict().items():
        assert torch.equal(tensor, critic_weights[name]), "the critic is not trained"
