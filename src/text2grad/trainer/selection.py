"""Which evaluation was the best so far, and whether waiting for a better one is worth while."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from text2grad.trainer.monitor import HELDOUT


class Evaluated(NamedTuple):
    """The held-out score after a step."""

    step: int
    score: float


@dataclass
class Selection:
    """The held-out scores of a run. It keeps no state beside the metrics, so a resumed run rebuilds it from disk."""

    scores: list[Evaluated] = field(default_factory=list)

    def observe(self, metrics: Mapping[str, Any]) -> bool:
        """Take in one step; returns whether its score is the best so far. A step without a score changes nothing."""
        score = metrics.get(HELDOUT)
        if score is None or not math.isfinite(score):
            return False
        self.scores.append(Evaluated(metrics["step"], float(score)))
        return self.best == self.scores[-1]

    @property
    def best(self) -> Evaluated | None:
        """The highest score, the earliest of equals; None before the first."""
        return max(self.scores, key=lambda evaluated: evaluated.score, default=None)

    def reason_to_stop(self, patience: int | None) -> str | None:
        """Why the run should end: the last `patience` scores did not rise above the best one before them."""
        if patience is None or self.best is None:
            return None
        waited = len(self.scores) - 1 - self.scores.index(self.best)
        if waited < patience:
            return None
        return (
            f"early stopping: the held-out score has not risen above {self.best.score:.4g}, that of step "
            f"{self.best.step} (evaluations since: {waited})"
        )
