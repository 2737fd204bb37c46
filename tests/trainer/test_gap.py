"""A sampler that is not quite the policy is measured and corrected for."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from support import MakeTrainer

from text2grad import Text2GradTrainer
from text2grad.trainer.batch import Rollout
from text2grad.trainer.gap import gap_metrics, truncated_weights

# exp(trained - sampled): 1, 1/2, 4; the last token is not valid
TRAINED = torch.tensor([[-1.0, -2.0 - math.log(2), -1.0, -9.0]])
SAMPLED = torch.tensor([[-1.0, -2.0, -1.0 - math.log(4), 0.0]])
MASK = torch.tensor([[1.0, 1.0, 1.0, 0.0]])


def test_weights_by_hand() -> None:
    assert truncated_weights(TRAINED, SAMPLED, cap=2.0)[0, :3].tolist() == pytest.approx([1.0, 0.5, 2.0])
    assert truncated_weights(TRAINED, SAMPLED)[0, :3].tolist() == pytest.approx([1.0, 0.5, 4.0])


def test_weights_carry_no_gradient() -> None:
    assert not truncated_weights(TRAINED.clone().requires_grad_(), SAMPLED, cap=2.0).requires_grad


def test_a_token_that_the_sampler_thought_impossible_weighs_the_cap() -> None:
    assert truncated_weights(torch.tensor([[-3.0]]), torch.tensor([[-math.inf]]), cap=2.0).item() == 2.0


@pytest.mark.parametrize(("cap", "weight"), [(2.0, 3.5 / 3), (None, 5.5 / 3)])
def test_metrics_by_hand(cap: float | None, weight: float) -> None:
    metrics = gap_metrics(TRAINED, SAMPLED, MASK, cap)
    assert metrics["rollout_gap"] == pytest.approx(math.log(8) / 3)
    assert metrics["rollout_gap_max"] == pytest.approx(math.log(4))
    assert metrics["rollout_weight"] == pytest.approx(weight)


@pytest.mark.parametrize(("sampled", "mask"), [(None, MASK), (SAMPLED, 0 * MASK)])
def test_what_nobody_knows_is_not_a_number(sampled: torch.Tensor | None, mask: torch.Tensor) -> None:
    assert all(map(math.isnan, gap_metrics(TRAINED, sampled, mask, 2.0).values()))


def stepped(trainer: Text2GradTrainer, monkeypatch: pytest.MonkeyPatch, sampled: torch.Tensor | None) -> list[float]:
    """The trained weights after one step on the first step's answers, sampled with these log-probabilities."""
    rollout = replace(trainer.rollout(1), sampled_logprobs=sampled)

    def as_sampled(step: int) -> Rollout:
        return rollout

    monkeypatch.setattr(trainer, "rollout", as_sampled)
    trainer.step(1)
    return [x for parameter in trainer.policy.trainable().values() for x in parameter.flatten().tolist()]


def test_without_a_gap_the_update_is_the_uncorrected_one_to_the_bit(
    make_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = (scorer := make_trainer("scorer")).score(scorer.rollout(1)).logprobs
    corrected = stepped(make_trainer("corrected", num_iterations=2), monkeypatch, trained)
    plain = make_trainer("plain", num_iterations=2, importance_sampling_clip_max=None)
    assert corrected == stepped(plain, monkeypatch, trained)
    unknown = stepped(make_trainer("unknown", num_iterations=2), monkeypatch, None)
    assert corrected == unknown


def test_a_gap_changes_the_update_and_only_where_it_is_corrected(
    make_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = (scorer := make_trainer("scorer")).score(scorer.rollout(1)).logprobs
    off = trained - 0.5 * (torch.arange(trained.shape[1]) % 2)
    corrected = stepped(make_trainer("corrected"), monkeypatch, off)
    ignored = stepped(make_trainer("ignored", importance_sampling_clip_max=None), monkeypatch, off)
    assert ignored == stepped(make_trainer("none", importance_sampling_clip_max=None), monkeypatch, trained)
    assert corrected != ignored


def test_the_samplers_own_log_probabilities_are_the_trainers(make_trainer: MakeTrainer) -> None:
    metrics, _ = make_trainer(temperature=1.4, num_generations=2).step(1)
    assert 0 <= metrics["rollout_gap"] <= metrics["rollout_gap_max"] < 1e-4
    assert metrics["rollout_weight"] == pytest.approx(1, abs=1e-4)
