"""The trainer's state beside tensors: what a checkpoint stores as JSON."""

from __future__ import annotations

import math

from pydantic.dataclasses import dataclass
from torch import Tensor

SETTLED, MAX_DEVIATIONS = 16, 10.0


@dataclass
class RunningScale:
    """Running standard deviation of sequence totals. It scales rewards and never shifts them.

    Totals are the same in every credit mode, so all modes are scaled alike. Once there are `SETTLED` of them, one that
    is further than `MAX_DEVIATIONS` from the mean counts as one at that distance: a single slip of a critic would make
    all later rewards tiny.
    """

    count: float = 0.0
    mean: float = 0.0
    squares: float = 0.0

    def update(self, totals: Tensor) -> None:
        """totals: (valid samples,), what each completion earned in all: token rewards and outcome."""
        for total in totals.tolist():
            if self.count >= SETTLED:
                reach = MAX_DEVIATIONS * self.std
                total = min(max(total, self.mean - reach), self.mean + reach)
            self.count += 1
            delta = total - self.mean
            self.mean += delta / self.count
            self.squares += delta * (total - self.mean)

    @property
    def std(self) -> float:
        """The standard deviation; 1 before two different totals."""
        deviation = (self.squares / self.count) ** 0.5 if self.count > 1 else 0.0
        return deviation if deviation > 1e-6 else 1.0


@dataclass
class KLController:
    """The coefficient of the KL penalty: fixed, or with a target adapted so that a sample's KL approaches the target.

    beta <- beta * (1 + clip(kl / target - 1, -0.2, 0.2) * samples / horizon)
    """

    beta: float
    target: float | None = None
    horizon: float = 10_000

    def update(self, kl: float, samples: int) -> None:
        """kl: mean over samples of the KL summed over a sample's tokens."""
        if self.target is not None and math.isfinite(kl):
            error = min(max(kl / self.target - 1, -0.2), 0.2)
            self.beta *= max(1 + error * samples / self.horizon, 0.1)  # many samples must not turn its sign


@dataclass
class TrainerState:
    """Counters and running statistics of a run. `TrainerState(**values)` restores what `asdict` returned."""

    step: int
    kl_controller: KLController
    reward_scale: RunningScale
    skipped_updates: int = 0
