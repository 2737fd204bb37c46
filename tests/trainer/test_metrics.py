"""Metrics of a step; a sampler whose probabilities differ from the trainer's is measured and corrected for."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from support import MakeTrainer

from text2grad import Text2GradTrainer
from text2grad.trainer.batch import Rollout
from text2grad.trainer.metrics import repetition, sampling_metrics

# exp(trained - sampled): 1, 1/2, 4; the last token is not valid
TRAINED = torch.tensor([[-1.0, -2.0 - math.log(2), -1.0, -9.0]])
SAMPLED = torch.tensor([[-1.0, -2.0, -1.0 - math.log(4), 0.0]])
MASK = torch.tensor([[1.0, 1.0, 1.0, 0.0]])


def test_repetition_is_the_share_of_runs_that_came_before() -> None:
    assert repetition([1, 2, 3, 4, 5, 6]) == 0
    assert repetition([7, 7, 7, 7, 7, 7]) == pytest.approx(2 / 3)  # three runs of four, one of them new
    assert repetition([1, 2, 3]) == 0


@pytest.mark.parametrize(("clip_max", "weight"), [(2.0, 3.5 / 3), (None, 5.5 / 3)])
def test_sampling_metrics_by_hand(clip_max: float | None, weight: float) -> None:
    metrics = sampling_metrics(TRAINED, SAMPLED, MASK, clip_max)
    assert metrics["sampling/logp_difference/mean"] == pytest.approx(math.log(8) / 3)
    assert metrics["sampling/logp_difference/max"] == pytest.approx(math.log(4))
    assert metrics["sampling/importance_ratio/mean"] == pytest.approx(weight)


@pytest.mark.parametrize(("sampled", "mask"), [(None, MASK), (SAMPLED, 0 * MASK)])
def test_unknown_sampling_metrics_are_nan(sampled: torch.Tensor | None, mask: torch.Tensor) -> None:
    assert all(map(math.isnan, sampling_metrics(TRAINED, sampled, mask, 2.0).values()))


def train_one_step(
    trainer: Text2GradTrainer, monkeypatch: pytest.MonkeyPatch, sampled: torch.Tensor | None
) -> list[float]:
    """The trained weights after one step on the first step's completions, sampled with these log-probabilities."""
    rollout = replace(trainer.rollout(1), sampled_logprobs=sampled)

    def as_sampled(step: int) -> Rollout:
        return rollout

    monkeypatch.setattr(trainer, "rollout", as_sampled)
    trainer.step(1)
    return [x for parameter in trainer.policy.trainable().values() for x in parameter.flatten().tolist()]


def test_without_a_difference_the_update_is_the_uncorrected_one_to_the_bit(
    make_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = (scorer := make_trainer("scorer")).score(scorer.rollout(1)).logprobs
    corrected = train_one_step(make_trainer("corrected", num_iterations=2), monkeypatch, trained)
    plain = make_trainer("plain", num_iterations=2, importance_sampling_clip_max=None)
    assert corrected == train_one_step(plain, monkeypatch, trained)
    unknown = train_one_step(make_trainer("unknown", num_iterations=2), monkeypatch, None)
    assert corrected == unknown


def test_a_difference_changes_the_update_and_only_where_it_is_corrected(
    make_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = (scorer := make_trainer("scorer")).score(scorer.rollout(1)).logprobs
    off = trained - 0.5 * (torch.arange(trained.shape[1]) % 2)
    corrected = train_one_step(make_trainer("corrected"), monkeypatch, off)
    ignored = train_one_step(make_trainer("ignored", importance_sampling_clip_max=None), monkeypatch, off)
    assert ignored == train_one_step(make_trainer("none", importance_sampling_clip_max=None), monkeypatch, trained)
    assert corrected != ignored


def test_the_samplers_own_log_probabilities_are_the_trainers(make_trainer: MakeTrainer) -> None:
    metrics, _ = make_trainer(temperature=1.4, num_generations=2).step(1)
    assert 0 <= metrics["sampling/logp_difference/mean"] <= metrics["sampling/logp_difference/max"] < 1e-4
    assert metrics["sampling/importance_ratio/mean"] == pytest.approx(1, abs=1e-4)
