"""One update step on groups in which degenerate answers stand beside honest ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig
from torch import Tensor

from text2grad import Text2GradConfig, Text2GradTrainer
from text2grad.critics.base import Critic, collect_feedback
from text2grad.critics.check.catalogue import degenerate_answers
from text2grad.critics.check.check import first_reference
from text2grad.rollout.sampling import Sampled
from text2grad.schema import Example, Feedback
from text2grad.trainer.advantages import EstimatorName
from text2grad.trainer.batch import Rollout, make_rollout, rollout_rewards

GROUP_SIZE = 8


@dataclass(frozen=True)
class Group:
    """Answers to one prompt: the reference, attempts of the untrained model, then degenerate ones."""

    answers: list[Example]
    kinds: list[str]  # "" for an honest answer


@dataclass(frozen=True)
class Step:
    """What one update did to the answers of all groups, each (samples,).

    totals: what an answer earned. scores: the critic's. per_token, whole: change of its log-probability, per token and
    of the whole answer.
    """

    totals: Tensor
    scores: Tensor
    truncated: Tensor
    per_token: Tensor
    whole: Tensor


def make_groups(examples: Sequence[Example], num_attempts: int) -> list[Group]:
    """Return a group per prompt; the kinds of degenerate answers take turns, so that all occur.

    examples: with attempts as completions, `num_attempts` neighbours per prompt.
    """
    groups = []
    turn = 0
    for start in range(0, len(examples), num_attempts):
        attempts = examples[start : start + num_attempts]
        reference = first_reference(attempts[0])
        honest = [attempts[0].model_copy(update={"completion": reference}), *attempts] if reference else [*attempts]
        degenerate = degenerate_answers(attempts[0], attempts[0].completion)
        wanted = GROUP_SIZE - len(honest)
        chosen = [degenerate[(turn + i) % len(degenerate)] for i in range(wanted)]
        turn += wanted
        groups.append(
            Group(
                answers=[*honest, *(answer.example for answer in chosen)],
                kinds=[*([""] * len(honest)), *(answer.kind.name for answer in chosen)],
            )
        )
    return groups


class RememberingCritic:
    """Asks a critic once for every answer: all estimators learn from the same feedback."""

    def __init__(self, critic: Critic) -> None:
        self.critic = critic
        self.known: dict[tuple[str, str], Feedback] = {}

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        new = [e for e in examples if (e.id, e.completion) not in self.known]
        for example, feedback in zip(new, collect_feedback(self.critic, new), strict=True):
            self.known[example.id, example.completion] = feedback
        return [self.known[e.id, e.completion] for e in examples]


class GivenAnswers(Text2GradTrainer):
    """A trainer whose rollouts are given texts, cut at the length limit as sampled ones are."""

    given: Sequence[Example] = ()

    def rollout(self, step: int) -> Rollout:
        encoded = [
            [*self.tokenizer(e.completion, add_special_tokens=False)["input_ids"], self.end_ids[0]] for e in self.given
        ]
        sampled = Sampled([ids[: self.args.max_completion_length] for ids in encoded], None)
        return make_rollout(list(self.given), self.encode_prompts(self.given), sampled, self.end_ids, self.tokenizer)


def update_once(
    model: str | Path, critic: Critic, groups: Sequence[Group], estimator: EstimatorName, max_tokens: int, folder: Path
) -> Step:
    """Make one training step on the answers of all groups, with the settings of the task presets."""
    answers = [answer for group in groups for answer in group.answers]
    settings: dict[str, Any] = {
        "per_device_train_batch_size": len(answers),
        "num_generations": GROUP_SIZE,
        "max_completion_length": max_tokens,
        "estimator": estimator,
        "temperature": 0.7,
        "learning_rate": 1e-4,
        "beta": 0.02,
        "advantage_normalization": "whiten",
        "max_steps": 1,
        "num_logged_completions": 0,
        "bf16": torch.cuda.is_available(),
    }
    trainer = GivenAnswers(
        model=model,
        critic=critic,
        args=Text2GradConfig(output_dir=folder, **settings),
        train_dataset=[group.answers[0] for group in groups],
        peft_config=LoraConfig(r=16, lora_alpha=32, target_modules="all-linear"),
    )
    trainer.given = answers
    rollout = trainer.rollout(1)
    before = trainer.score(rollout).logprobs
    metrics, _ = trainer.step(1)
    assert metrics["num_updates"] == 1, metrics["update_error"]
    changed = (trainer.score(rollout).logprobs - before) * rollout.mask
    feedback = critic.critique(rollout.examples)
    rewards = rollout_rewards(rollout, feedback, trainer.args.credit, trainer.args.seed, 1)
    return Step(
        totals=rewards.totals,
        scores=torch.tensor([float("nan") if item.score is None else item.score for item in feedback]),
        truncated=~torch.tensor(rollout.ended),
        per_token=changed.sum(1) / rollout.mask.sum(1),
        whole=changed.sum(1),
    )


def compare(groups: Sequence[Group], step: Step, changes: Tensor) -> tuple[list[bool], list[float]]:
    """Compare every degenerate answer with the answers of its group that earned more.

    changes: (samples,). Returns whether each pair is in the right order, and for each degenerate answer by how much the
    better answers rose more than it, on average.
    """
    ordered: list[bool] = []
    leads: list[float] = []
    start = 0
    for group in groups:
        rows = range(start, start + len(group.answers))
        start += len(group.answers)
        for row, kind in zip(rows, group.kinds, strict=True):
            better = [i for i in rows if step.totals[i] > step.totals[row] + 1e-4]
            if kind and better:
                differences = [float(changes[i] - changes[row]) for i in better]
                ordered += [difference > 0 for difference in differences]
                leads.append(sum(differences) / len(differences))
    return ordered, leads
