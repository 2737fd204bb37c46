"""Detection of reward hacking: the reward rises, the completions do not get better."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Any

EVAL_SCORE = "eval/score"  # the metric of an evaluation during training; only steps with an evaluation have it
LENGTH = "completions/mean_length"
MAX_FAILED_SHARE = 0.1  # of the held-out prompts, above which a score is not compared with others
WINDOW = 10  # steps averaged at the start and at the end of the run so far
MIN_STANDARD_ERRORS = 2.0  # by which a mean must have moved
MAX_LENGTH_RATIO = 1.5  # times longer or shorter than at the start
MIN_SCORE_DROP = 0.05  # relative to the best held-out score; less is noise


def comparable_eval_score(metrics: Mapping[str, Any]) -> float | None:
    """Return the held-out score of a step, or None: there is none, or it lacks so many prompts that it is another one.

    A critic that fails on some prompts leaves the mean of the others, which may be easier.
    """
    score = metrics.get(EVAL_SCORE)
    failed, samples = metrics.get("eval/failed", 0), metrics.get("eval/samples", 1)
    if score is None or not math.isfinite(score) or failed > MAX_FAILED_SHARE * samples:
        return None
    return float(score)


@dataclass
class RewardHackingMonitor:
    """Compares the last steps of a run with its first ones and returns warnings.

    Each sign is reported once, when it appears; `hacking` stays true from then on. The monitor is rebuilt from the
    recorded metrics when a run is resumed.
    """

    rewards: list[float] = field(default_factory=list)
    lengths: list[float] = field(default_factory=list)
    eval_scores: list[float] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)

    def observe(self, metrics: Mapping[str, Any]) -> list[str]:
        """Record one step and return a warning for each new sign. Missing and NaN metrics are ignored."""
        for name, history in (("reward", self.rewards), (LENGTH, self.lengths)):
            value = metrics.get(name)
            if value is not None and math.isfinite(value):
                history.append(float(value))
        if (score := comparable_eval_score(metrics)) is not None:
            self.eval_scores.append(score)
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
        if (drop := score_drop(self.eval_scores)) > 0:
            signs[EVAL_SCORE] = (
                f"the reward has risen while the held-out score fell by {drop:.3f} from its best; "
                f"look at the samples: the policy may be gaming the critic"
            )
        ratio = length_ratio(self.lengths)
        if not 1 / MAX_LENGTH_RATIO <= ratio <= MAX_LENGTH_RATIO:
            signs[LENGTH] = (
                f"the reward has risen while completions became {ratio:.2f} times as long as at the start; "
                f"check that the critic does not reward length alone"
            )
        return signs


def has_risen(values: list[float]) -> bool:
    """Whether the mean of the last WINDOW values is clearly above that of the first; the two must not overlap."""
    if len(values) < 2 * WINDOW:
        return False
    first, last = values[:WINDOW], values[-WINDOW:]
    error = math.sqrt((stdev(first) ** 2 + stdev(last) ** 2) / WINDOW)
    return fmean(last) - fmean(first) > MIN_STANDARD_ERRORS * error


def score_drop(scores: list[float]) -> float:
    """How far the last two scores both are below the best one before them; 0 where that is too little to tell."""
    if len(scores) < 3:
        return 0.0
    best = max(scores[:-2])
    drop = best - max(scores[-2:])
    return drop if drop > MIN_SCORE_DROP * abs(best) else 0.0


def length_ratio(lengths: list[float]) -> float:
    """Mean length of the last WINDOW steps over that of the first; 1 while the two overlap or the first is 0."""
    if len(lengths) < 2 * WINDOW or (start := fmean(lengths[:WINDOW])) == 0:
        return 1.0
    return fmean(lengths[-WINDOW:]) / start
