"""When a run is rolled back, stopped or aborted: failed steps, early stopping, weight snapshots."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch

from text2grad.distributed.learner import optimizer_parameters
from text2grad.errors import UserError
from text2grad.trainer.monitor import comparable_eval_score

MAX_FAILED_STEPS = 3  # consecutive steps in which every critique failed, or the update was skipped


@dataclass
class FailureGuard:
    """Raise after too many consecutive steps without learning, with the cause."""

    checkpoint: Path
    failed_critiques: int = 0
    skipped_updates: int = 0

    def observe(self, metrics: Mapping[str, Any]) -> None:
        """Count one step; raises UserError at the last one allowed."""
        all_failed = metrics["critic/failed"] == metrics["samples"]
        self.failed_critiques = self.failed_critiques + 1 if all_failed else 0
        self.skipped_updates = self.skipped_updates + 1 if metrics["skipped"] else 0
        if self.failed_critiques == MAX_FAILED_STEPS:
            raise UserError(
                f"every critique failed in {MAX_FAILED_STEPS} consecutive steps, last: {metrics['critic/error']}; "
                f"fix the critic and continue with --resume"
            )
        if self.skipped_updates == MAX_FAILED_STEPS:
            raise UserError(
                f"{metrics['update_error']}, and {MAX_FAILED_STEPS} consecutive updates were skipped; the last good "
                f"checkpoint is kept in {self.checkpoint}: lower learning_rate and continue with --resume"
            )


def check_some_critique(steps: Iterable[Mapping[str, Any]]) -> None:
    """Raise UserError where every critique of every step failed. steps: the metrics of each step of a run."""
    last = None
    for last in steps:
        if last["critic/failed"] < last["samples"]:
            return
    if last is not None:
        raise UserError(
            f"nothing was learned: every critique of the run failed, last: {last['critic/error']}; fix the critic and "
            f"start again in another output_dir"
        )


class EvalScore(NamedTuple):
    """The held-out score after a step."""

    step: int
    score: float


@dataclass
class BestCheckpoint:
    """The held-out scores of a run, the best one, and early stopping.

    It is rebuilt from the recorded metrics when a run is resumed.
    """

    scores: list[EvalScore] = field(default_factory=list)

    def observe(self, metrics: Mapping[str, Any]) -> bool:
        """Record the score of a step, if it has one that counts. Returns whether it is the best so far."""
        score = comparable_eval_score(metrics)
        if score is None:
            return False
        self.scores.append(EvalScore(metrics["step"], float(score)))
        return self.best == self.scores[-1]

    @property
    def best(self) -> EvalScore | None:
        """The highest score, the earliest of equal ones; None before the first."""
        return max(self.scores, key=lambda evaluated: evaluated.score, default=None)

    def stop_reason(self, patience: int | None) -> str | None:
        """Return why to stop early, or None: the last `patience` scores are not above the best one before them."""
        if patience is None or self.best is None:
            return None
        waited = len(self.scores) - 1 - self.scores.index(self.best)
        if waited < patience:
            return None
        return (
            f"early stopping: the held-out score has not risen above {self.best.score:.4g}, that of step "
            f"{self.best.step} (evaluations since: {waited})"
        )


def take_snapshot(optimizer: torch.optim.Optimizer) -> Callable[[], None]:
    """Copy trained weights and optimiser state. Returns a function that restores them, to roll an update back.

    With Adam the copy takes three times the memory of the trained weights.
    """
    weights = [p.detach().clone() for p in optimizer_parameters(optimizer)]
    state = copy.deepcopy(optimizer.state_dict())

    @torch.no_grad()
    def restore() -> None:
        for parameter, saved in zip(optimizer_parameters(optimizer), weights, strict=True):
            parameter.copy_(saved)
        optimizer.load_state_dict(copy.deepcopy(state))

    return restore
