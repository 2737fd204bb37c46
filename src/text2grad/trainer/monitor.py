"""Watching a run for the signs of a reward that is being gamed: the reward rises, the answers do not get better."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Any

HELDOUT = "heldout_score"  # the metric by which an evaluation during training reports, in the steps that have one
WINDOW = 10  # steps that are averaged at the start and at the end of what has been seen
CLEARLY = 2.0  # standard errors by which a mean must have moved
LENGTH_DRIFT = 1.5  # times longer or shorter than at the start
HELDOUT_DROP = 0.05  # of the best held-out score; less is chance


@dataclass
class Monitor:
    """Compares the last steps of a run with its first ones. It is told each step's metrics and answers with warnings.

    Every sign is warned of once, when it appears; `hacking` stays true from then on. It keeps no state of its own
    beside the metrics, so a resumed run rebuilds it from the metrics on disk.
    """

    rewards: list[float] = field(default_factory=list)
    lengths: list[float] = field(default_factory=list)
    heldout: list[float] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)

    def observe(self, metrics: Mapping[str, Any]) -> list[str]:
        """Take in one step; returns a sentence for each sign that is new. What is missing or NaN is passed over."""
        for name, history in (("reward", self.rewards), ("length", self.lengths), (HELDOUT, self.heldout)):
            value = metrics.get(name)
            if value is not None and math.isfinite(value):
                history.append(float(value))
        signs = self._signs() if has_risen(self.rewards) else {}
        new = [sentence for sign, sentence in signs.items() if sign not in self.seen]
        self.seen |= signs.keys()
        return new

    @property
    def hacking(self) -> bool:
        """Whether any sign has been seen."""
        return bool(self.seen)

    def _signs(self) -> dict[str, str]:
        signs = {}
        if (drop := heldout_drop(self.heldout)) > 0:
            signs[HELDOUT] = (
                f"the reward has risen while the held-out score fell by {drop:.3f} from its best; "
                f"look at the samples: the policy may be gaming the critic"
            )
        ratio = length_ratio(self.lengths)
        if not 1 / LENGTH_DRIFT <= ratio <= LENGTH_DRIFT:
            signs["length"] = (
                f"the reward has risen while answers became {ratio:.2f} times as long as at the start; "
                f"check that the critic does not pay for length alone"
            )
        return signs


def has_risen(values: list[float]) -> bool:
    """Whether the mean of the last WINDOW values is clearly above that of the first; the two must not overlap."""
    if len(values) < 2 * WINDOW:
        return False
    first, last = values[:WINDOW], values[-WINDOW:]
    error = math.sqrt((stdev(first) ** 2 + stdev(last) ** 2) / WINDOW)
    return fmean(last) - fmean(first) > CLEARLY * error


def heldout_drop(scores: list[float]) -> float:
    """How far the last two evaluations both lie below the best one before them; 0 where it is too little to tell."""
    if len(scores) < 3:
        return 0.0
    best = max(scores[:-2])
    drop = best - max(scores[-2:])
    return drop if drop > HELDOUT_DROP * abs(best) else 0.0


def length_ratio(lengths: list[float]) -> float:
    """Mean length of the last WINDOW steps over that of the first; 1 while they overlap or where there is no start."""
    if len(lengths) < 2 * WINDOW or (start := fmean(lengths[:WINDOW])) == 0:
        return 1.0
    return fmean(lengths[-WINDOW:]) / start
