"""Trainers in lockstep compute what trainers of their own do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from evidence_arms import ARMS
from evidence_dpo import dpo_step
from evidence_ilf import ilf_step
from lora_stack import pad_lengths
from peft import LoraConfig
from records_task import RecordCritic, make_examples
from small_model import small_model
from stacked_trainer import TrainerStack

from text2grad import Text2GradConfig, Text2GradTrainer
from text2grad.schema import Example, Feedback, Span

ADAPTER = LoraConfig(r=4, lora_alpha=8, target_modules="all-linear")
ARM_NAMES = ("scalar rloo", "paper", "corrections local", "spans moved")
STEPS = 2


class TokenCritic:
    """Blames and corrects words that a random model writes, so that every arm has something to learn."""

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        found = []
        for example in examples:
            text = example.completion
            spans = [Span(start=i, end=i + 1, label="poor", replacement="o") for i, c in enumerate(text) if c == "e"]
            found.append(Feedback(critique="e", spans=spans, score=-len(spans) / len(text), critic="test"))
        return found


def config(folder: Path, arm: str, seed: int, **changes: Any) -> Text2GradConfig:
    settings: dict[str, Any] = {
        "output_dir": folder,
        "seed": seed,
        "per_device_train_batch_size": 8,
        "num_generations": 2,
        "max_completion_length": 12,
        "learning_rate": 1e-2,
        "bf16": False,
        "num_logged_completions": 0,
        "max_steps": STEPS,
        "gradient_checkpointing": True,
    }
    return Text2GradConfig(**(settings | ARMS[arm].settings | changes))


def trainer_of(model: str, args: Text2GradConfig, examples: Sequence[Example]) -> Text2GradTrainer:
    return Text2GradTrainer(model, TokenCritic(), args, examples, peft_config=ADAPTER)


def adapter(trainer: Text2GradTrainer) -> list[torch.Tensor]:
    layers = [m for m in trainer.policy.model.modules() if hasattr(m, "lora_A")]
    return [w for layer in layers for w in (layer.lora_A["default"].weight, layer.lora_B["default"].weight)]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return small_model(tmp_path_factory.mktemp("model"))


def test_trainers_in_lockstep_train_as_trainers_of_their_own(model: str, tmp_path: Path) -> None:
    examples = make_examples(16, 4, seed=0)
    configs = [config(tmp_path, arm, seed) for seed, arm in enumerate(ARM_NAMES)]
    stack = TrainerStack(trainer_of(model, configs[0], examples), configs, [TokenCritic()] * len(configs))
    started = stack._stack.weights.clone()

    def train(trainer: Text2GradTrainer) -> list[dict[str, Any]]:
        return [trainer.step(step)[0] for step in range(1, STEPS + 1)]

    together = stack.run(train)
    for member, args in enumerate(configs):
        alone = trainer_of(model, args, examples)
        at = 0
        for weight in adapter(alone):
            weight.data = started[member, at : at + weight.numel()].view_as(weight).clone()
            at += weight.numel()
        metrics = train(alone)
        of_member = together[member]
        assert of_member is not None
        for here, there in zip(of_member, metrics, strict=True):
            for name in ("reward", "policy_loss", "value_loss", "entropy", "kl", "grad_norm", "approx_kl"):
                assert here[name] == pytest.approx(there[name], rel=2e-3, abs=2e-5), (ARM_NAMES[member], name)
        assert metrics[0]["grad_norm"] > 0
        trained = torch.cat([weight.detach().flatten() for weight in adapter(alone)])
        moved = (trained - started[member]).norm()
        assert (stack._stack.weights[member] - trained).norm() < 0.02 * moved


@pytest.mark.parametrize("learn", [dpo_step, ilf_step])
def test_supervised_arms_run_in_lockstep(model: str, tmp_path: Path, learn: Any) -> None:
    configs = [config(tmp_path, "corrections local", seed) for seed in (1, 2)]
    stack = TrainerStack(
        trainer_of(model, configs[0], make_examples(8, 4, seed=0)), configs, [TokenCritic(), RecordCritic()]
    )
    before = stack._stack.weights.clone()
    assert None not in stack.run(lambda trainer: learn(trainer, 1) or {})
    assert not torch.equal(stack._stack.weights[0], before[0])


def test_padding_adds_up_and_has_no_row_of_one_token() -> None:
    for missing in [0, *range(2, 60)]:
        lengths = pad_lengths(missing, longest=7)
        assert sum(lengths) == missing
        assert all(length >= 2 for length in lengths)
