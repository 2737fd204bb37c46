"""What a step of the trainer hands from stage to stage: a stage left out, or one that gets other data, fails a test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from support import MakeTrainer, Seen, VowelCritic

from text2grad import Text2GradTrainer
from text2grad.models.policy import Scores
from text2grad.schema import Example, Feedback
from text2grad.trainer import trainer as trainer_module
from text2grad.trainer.batch import Batch, Rollout
from text2grad.trainer.corrections import NO_CORRECTIONS, CorrectionBatch
from text2grad.trainer.update import UpdateResult

LENGTHS = [10, 4, 7, 2]
SHIFTS = torch.tensor([[0.1], [0.2], [0.3], [0.4]])  # log pi - log pi_ref of every token of a sample


class Scored(VowelCritic):
    """As VowelCritic, with scores of 0.5, 0.25, -1 and 1."""

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        said = zip(super().critique(examples), (0.5, 0.25, -1.0, 1.0), strict=True)
        return [one if one.status == "failed" else one.model_copy(update={"score": score}) for one, score in said]


def plant(trainer: Text2GradTrainer, monkeypatch: pytest.MonkeyPatch) -> Rollout:
    """Make every step see these completions, and a reference that differs from the policy by SHIFTS.

    After the end of a completion the scores are numbers that must not count.
    """
    drawn = trainer.rollout(1)
    cut = {
        name: [row[:n] for row, n in zip(getattr(drawn, name), LENGTHS, strict=True)]
        for name in ("completions", "offsets")
    }
    examples = [
        example.model_copy(update={"completion": example.completion[: offsets[-1][1]]})
        for example, offsets in zip(drawn.examples, cut["offsets"], strict=True)
    ]
    rollout = replace(drawn, **cut, examples=examples, sampled_logprobs=torch.full((4, 10), -6.0))
    after_end = 1 - rollout.mask
    current = trainer.score(rollout)
    current = current._replace(logprobs=current.logprobs + 9 * after_end)
    reference = current._replace(logprobs=current.logprobs - SHIFTS - 5 * after_end)

    def rollout_of(step: int) -> Rollout:
        return rollout

    def critique_and_score(rollout: Rollout) -> tuple[list[Feedback], CorrectionBatch, Scores, Scores]:
        return trainer.critic.critique(rollout.examples), NO_CORRECTIONS, current, reference

    monkeypatch.setattr(trainer, "rollout", rollout_of)
    monkeypatch.setattr(trainer, "critique_and_score", critique_and_score)
    return rollout


def capture(monkeypatch: pytest.MonkeyPatch) -> list[Batch]:
    """Record the batch of every update."""
    seen: list[Batch] = []
    update = trainer_module.update

    def recording(learner: Any, rollout: Rollout, batch: Batch, *rest: Any) -> UpdateResult:
        seen.append(batch)
        return update(learner, rollout, batch, *rest)

    monkeypatch.setattr(trainer_module, "update", recording)
    return seen


def test_adaptive_control_gets_the_kl_and_number_of_valid_samples(
    make_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = make_trainer(
        critic=Scored(failing=[3]),
        beta=0.1,
        kl_controller="adaptive",
        kl_controller_target=2.5,
        kl_controller_horizon=30,
    )
    plant(trainer, monkeypatch)
    metrics, _ = trainer.step(1)
    kl = (10 * 0.1 + 4 * 0.2 + 7 * 0.3) / 3  # 1.3, so an error of -0.48, clipped to -0.2
    assert metrics["kl"] == pytest.approx(kl, rel=1e-5)
    assert metrics["beta"] == trainer.state.kl_controller.beta == pytest.approx(0.1 * (1 - 0.2 * 3 / 30))
    trainer.state.kl_controller.target = kl / 1.1
    metrics, _ = trainer.step(2)
    assert metrics["beta"] == pytest.approx(0.1 * (1 - 0.2 * 3 / 30) * (1 + 0.1 * 3 / 30))


def test_beta_changes_over_the_steps_of_a_run_and_each_step_uses_the_last_one(
    make_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, batches = Seen(), capture(monkeypatch)
    settings = {"beta": 0.1, "kl_controller_target": 9.0, "kl_controller_horizon": 40, "kl_placement": "loss"}
    make_trainer("adaptive", kl_controller="adaptive", callbacks=[seen], **settings).train()
    expected = [0.1 * (1 - 0.2 * 4 / 40) ** n for n in range(4)]  # the KL stays far below 9
    assert [metrics["beta"] for metrics in seen.steps] == pytest.approx(expected[1:])
    assert [batch.kl_coef for batch in batches] == pytest.approx(expected[:3])
    fixed = Seen()
    make_trainer("fixed", kl_controller="fixed", callbacks=[fixed], **settings).train()
    assert [metrics["beta"] for metrics in fixed.steps] == [0.1] * 3


def test_without_a_valid_sample_beta_stays(make_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = make_trainer(critic=VowelCritic(failing=range(4)), beta=0.1, kl_controller="adaptive")
    plant(trainer, monkeypatch)
    metrics, _ = trainer.step(1)
    assert metrics["beta"] == 0.1
    assert trainer.state.reward_scale.count == 0


def test_the_learning_rates_follow_the_schedule(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(
        max_steps=6, warmup_steps=2, lr_scheduler_type="linear", learning_rate=0.01, value_learning_rate=0.1
    )
    for step, factor in ((1, 0.5), (2, 1.0), (3, 1.0), (6, 0.25)):
        metrics, _ = trainer.step(step)
        assert metrics["learning_rate"] == pytest.approx(0.01 * factor)
        assert [group["lr"] for group in trainer.optimizer.param_groups] == pytest.approx([0.01 * factor, 0.1 * factor])


def test_skipped_updates_are_counted(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(rollback_kl=1e-9)
    for step in (1, 2):
        metrics, _ = trainer.step(step)
        assert metrics["skipped"] == 1
        assert trainer.state.skipped_updates == step
    fine = make_trainer("good")
    fine.step(1)
    assert fine.state.skipped_updates == 0


def test_the_batch_is_made_of_this_steps_scores_rewards_and_settings(
    make_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = make_trainer(
        critic=Scored(failing=[1]), beta=0.0, advantage_normalization="none", importance_sampling_clip_max=1.5
    )
    rollout, batches = plant(trainer, monkeypatch), capture(monkeypatch)
    _, _, current, reference = trainer.critique_and_score(rollout)
    metrics, samples = trainer.step(1)
    (batch,) = batches
    assert torch.equal(batch.old_logprobs, current.logprobs)
    assert torch.equal(batch.reference_logprobs, reference.logprobs)
    assert batch.mask.sum(1).tolist() == [10, 0, 7, 2]
    assert batch.importance_weights is not None
    weights = (current.logprobs + 6).exp()
    assert torch.equal(batch.importance_weights, weights.clamp(max=1.5))
    # Scores of 0.5, -1 and 1, less 1 for truncation: a mean of -5/6.
    scale = trainer.state.reward_scale
    assert (scale.count, scale.mean) == (3, pytest.approx(-5 / 6))
    assert [sample["total"] for sample in samples] == pytest.approx([-0.5, None, -2.0, 0.0])
    means = batch.advantages.sum(1) / batch.mask.sum(1)
    others = torch.tensor([-0.5 + 1.0, 0.0, -2.0 + 0.25, 0.0 + 1.25]) / scale.std
    assert means[[0, 2, 3]].tolist() == pytest.approx(others[[0, 2, 3]].tolist(), abs=1e-5)
    valid = weights[batch.mask.bool()]
    assert valid.min() < 1.5 < valid.max()
    assert metrics["sampling/importance_ratio/mean"] == pytest.approx(valid.clamp(max=1.5).mean().item())


def test_the_reference_stands_for_the_policy_that_wrote_logged_completions(
    make_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = make_trainer(critic=Scored())
    rollout, batches = plant(trainer, monkeypatch), capture(monkeypatch)
    _, _, current, reference = trainer.critique_and_score(rollout)
    monkeypatch.setattr(trainer, "rollout", lambda step: replace(rollout, logged=True))
    metrics, _ = trainer.step(1)
    assert torch.equal(batches[0].old_logprobs, reference.logprobs)
    assert torch.equal(batches[0].old_values, current.values)
    kl = sum(n * (math.exp(-d) - 1 + d) for n, d in zip(LENGTHS, SHIFTS.flatten().tolist(), strict=True))
    assert metrics["kl"] == pytest.approx(kl / 4, rel=1e-4)  # of the policy, and never negative


def test_shuffled_rewards_are_drawn_anew_for_every_step_and_seed(
    make_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    credit = {"mode": "shuffled", "total": "spans"}

    def rewards(folder: str, seed: int, step: int) -> list[list[float]]:
        trainer = make_trainer(folder, critic=First(), seed=0, credit=credit, num_logged_completions=4)
        plant(trainer, monkeypatch)
        trainer.args = trainer.args.model_copy(update={"seed": seed})
        return [[token["reward"] for token in sample["tokens"]] for sample in trainer.step(step)[1]]

    class First:
        def critique(self, examples: Sequence[Example]) -> list[Feedback]:
            return [Feedback(critic="first", scores=[(0, 1, 1.0)]) for _ in examples]

    first = rewards("a", 0, 1)
    assert first == rewards("b", 0, 1)
    assert first != rewards("c", 0, 2)
    assert first != rewards("d", 1, 1)


@pytest.mark.parametrize(("count", "every", "step", "logged"), [(2, 1, 1, 2), (9, 2, 2, 4), (9, 2, 3, 0), (0, 1, 1, 0)])
def test_which_completions_are_logged(
    make_trainer: MakeTrainer, count: int, every: int, step: int, logged: int
) -> None:
    trainer = make_trainer(num_logged_completions=count, log_completions_steps=every)
    rollout = trainer.rollout(step)
    metrics, samples = trainer.step(step)
    assert [(sample["step"], sample["sample"]) for sample in samples] == [(step, i) for i in range(logged)]
    assert metrics["step"] == step
    after = trainer.score(rollout).logprobs
    for i, sample in enumerate(samples):
        assert sample["completion"] == rollout.examples[i].completion
        learned = [token["logprob_after"] for token in sample["tokens"]]
        assert learned == pytest.approx(after[i].tolist(), abs=1e-5)
        assert learned != pytest.approx([token["logprob_before"] for token in sample["tokens"]], abs=1e-5)


def test_logged_tokens_have_their_kl_and_values_where_a_value_head_is_trained(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(num_logged_completions=2, estimator="gae", vf_coef=1.0, value_learning_rate=0.1)
    for step in (1, 2):
        rollout = trainer.rollout(step)
        current, reference = trainer.score(rollout), trainer.score(rollout, reference=True)
        _, samples = trainer.step(step)
    for i, sample in enumerate(samples):
        length = len(sample["tokens"])
        kl = (current.logprobs - reference.logprobs)[i, :length].tolist()
        assert [token["kl"] for token in sample["tokens"]] == pytest.approx(kl, abs=1e-5)
        assert [token["value"] for token in sample["tokens"]] == pytest.approx(
            current.values[i, :length].tolist(), abs=1e-5
        )
        assert any(token["value"] for token in sample["tokens"])
    _, untrained = make_trainer("other", num_logged_completions=1).step(1)
    assert "value" not in untrained[0]["tokens"][0]


def test_the_clocks_of_a_step(make_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = make_trainer()
    plant(trainer, monkeypatch)
    metrics, _ = trainer.step(1)
    stages = {name: seconds for name, seconds in metrics.items() if name.startswith("time/")}
    assert stages.keys() == {"time/step", "time/rollout", "time/critique_and_score", "time/update"}
    assert 0 < sum(stages.values()) - stages["time/step"] <= stages["time/step"]
    assert metrics["tokens_per_second"] == pytest.approx(sum(LENGTHS) / metrics["time/rollout"])
    assert math.isfinite(metrics["tokens_per_second"])
