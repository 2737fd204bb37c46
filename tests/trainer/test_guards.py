from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from text2grad.errors import UserError
from text2grad.trainer.guards import (
    MAX_FAILED_STEPS,
    BestCheckpoint,
    EvalScore,
    FailureGuard,
    check_some_critique,
    take_snapshot,
)
from text2grad.trainer.monitor import EVAL_SCORE

FINE = {"critic/failed": 1, "samples": 4, "critic/error": "timeout", "skipped": 0.0, "update_error": None}
ALL_FAILED = FINE | {"critic/failed": 4}
SKIPPED = FINE | {"skipped": 1.0, "update_error": "the update's policy_loss is nan"}


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (ALL_FAILED, "every critique failed in 3 consecutive steps, last: timeout"),
        (
            SKIPPED,
            "policy_loss is nan, and 3 consecutive updates were skipped; the last good checkpoint is kept in run/last",
        ),
    ],
)
def test_only_consecutive_failures_count(failure: dict[str, object], message: str) -> None:
    failure_guard = FailureGuard(Path("run/last"))
    for metrics in [*[failure] * (MAX_FAILED_STEPS - 1), FINE, *[failure] * (MAX_FAILED_STEPS - 1)]:
        failure_guard.observe(metrics)
    with pytest.raises(UserError, match=message):
        failure_guard.observe(failure)


def test_a_run_needs_one_critique_that_did_not_fail() -> None:
    check_some_critique([])
    check_some_critique([ALL_FAILED, FINE, ALL_FAILED])
    with pytest.raises(UserError, match="nothing was learned: every critique of the run failed, last: gone; fix the"):
        check_some_critique([ALL_FAILED, ALL_FAILED | {"critic/error": "gone"}])


def observe_scores(*scores: float | None) -> tuple[BestCheckpoint, list[bool]]:
    checkpoint = BestCheckpoint()
    return checkpoint, [checkpoint.observe({"step": 2 * i, EVAL_SCORE: score}) for i, score in enumerate(scores, 1)]


def test_a_score_of_few_of_the_prompts_is_not_compared() -> None:
    checkpoint = BestCheckpoint()
    assert checkpoint.observe({"step": 1, EVAL_SCORE: 0.6, "eval/samples": 20, "eval/failed": 2})
    assert not checkpoint.observe({"step": 2, EVAL_SCORE: 0.7, "eval/samples": 20, "eval/failed": 3})
    assert checkpoint.best == EvalScore(step=1, score=0.6)


def test_a_better_score_is_the_best_so_far_and_an_equal_one_is_not() -> None:
    checkpoint, improved = observe_scores(-2.0, -3.0, -1.0, -1.0)
    assert improved == [True, False, True, False]
    assert checkpoint.best == EvalScore(step=6, score=-1.0)


def test_steps_without_a_score_change_nothing() -> None:
    checkpoint, improved = observe_scores(None, math.nan, 0.5, None, math.nan)
    assert improved == [False, False, True, False, False]
    assert not BestCheckpoint().observe({"step": 1, "reward": 3.0})
    assert checkpoint.stop_reason(patience=1) is None, "nothing was measured since the best"


def test_patience_counts_evaluations_since_the_best() -> None:
    checkpoint, _ = observe_scores(0.1, 0.4, 0.3)
    assert checkpoint.stop_reason(patience=1) == (
        "early stopping: the held-out score has not risen above 0.4, that of step 4 (evaluations since: 1)"
    )
    assert checkpoint.stop_reason(patience=2) is None
    checkpoint.observe({"step": 8, EVAL_SCORE: 0.4})
    assert checkpoint.stop_reason(patience=2) is not None
    checkpoint.observe({"step": 10, EVAL_SCORE: 0.41})
    assert checkpoint.stop_reason(patience=1) is None


def test_without_patience_or_scores_there_is_no_stop_reason() -> None:
    assert observe_scores(3.0, 2.0, 1.0)[0].stop_reason(patience=None) is None
    assert BestCheckpoint().stop_reason(patience=1) is None


def step(optimizer: torch.optim.Optimizer, weight: torch.nn.Parameter) -> None:
    optimizer.zero_grad()
    (weight**2).sum().backward()
    optimizer.step()


def test_a_rolled_back_step_leaves_no_trace_in_weights_or_momentum() -> None:
    ends = []
    for detour in (False, True):
        weight = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
        optimizer = torch.optim.AdamW([weight], lr=0.1)
        step(optimizer, weight)
        if detour:
            restore = take_snapshot(optimizer)
            for _ in range(2):  # a snapshot can be used twice
                step(optimizer, weight)
                restore()
        step(optimizer, weight)
        ends.append(weight.detach().clone())
    assert torch.equal(ends[0], ends[1])


def test_the_state_before_the_first_step_is_restored_too() -> None:
    weight = torch.nn.Parameter(torch.tensor([1.0]))
    optimizer = torch.optim.AdamW([weight], lr=0.1)
    restore = take_snapshot(optimizer)
    step(optimizer, weight)
    restore()
    assert weight.item() == 1.0
    assert not optimizer.state_dict()["state"]
