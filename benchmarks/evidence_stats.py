"""Comparisons of the arms of `evidence.py`: means, paired differences, lengths, costs. Pure functions of run files."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2_000
SCALAR_ARMS = (
    "scalar rloo",
    "scalar ppo",
    "TRL GRPO",
)  # with the information of the others; the holistic number has more
MAX_LENGTH_DIFFERENCE = 0.15
OVERLAP = 5  # percent of the answers that are at least as short, and at least as long, as the other arm's
POWER = 2.8  # standard errors that a true difference must have to be found in four of five cases, at 5%
BySeed = Mapping[int, Any]
Runs = Mapping[str, BySeed]  # arm -> seed -> run


def compare(runs: Runs, metrics: Sequence[str]) -> list[dict[str, Any]]:
    """Return a row per arm: its metrics, and its difference from the best scalar arm on the first of them."""
    metric = metrics[0]
    scalars = {arm: fmean(last(runs[arm], metric)) for arm in SCALAR_ARMS if arm in runs}
    best = max(scalars, key=lambda arm: scalars[arm]) if scalars else None
    rows = []
    for arm, by_seed in runs.items():
        row = describe(arm, by_seed, metrics)
        if best is not None and arm != best:
            row |= {"against": best, **difference(runs[best], by_seed, metric)}
            row["samples"] = samples_to(mean_curve(by_seed, metric), mean_curve(runs[best], metric))
        rows.append(row)
    return rows


def describe(arm: str, by_seed: BySeed, metrics: Sequence[str]) -> dict[str, Any]:
    """Return the means of an arm after training, and before where that says something."""
    row: dict[str, Any] = {"arm": arm, "seeds": sorted(by_seed)}
    for name in metrics:
        row[name], row[f"{name}_by_seed"] = fmean(last(by_seed, name)), last(by_seed, name)
        row[f"{name}_before"] = fmean(fmean(r[name] for r in run["before"]) for run in by_seed.values())
    rows = [row for run in by_seed.values() for row in run["after"]]
    row["score"] = float(np.nanmean([r["score"] for r in rows]))
    row |= {name: fmean(r[name] for r in rows) for name in ("words", "kl")}
    row["perplexity"] = math.exp(fmean(r["surprise"] for r in rows))
    row["length_ratio"] = row["words"] / fmean(r["wanted_words"] for r in rows)
    ends = [run["curve"][-1] for run in by_seed.values()]
    row |= {name: fmean(end[name] for end in ends) for name in ("seconds", "critic_calls", "sampled_tokens")}
    points = 100 * (row[metrics[0]] - row[f"{metrics[0]}_before"])
    row["seconds_per_point"] = row["seconds"] / points if points > 0 else None
    row["critic_calls_per_point"] = row["critic_calls"] / points if points > 0 else None
    row["faults_before"], row["faults"] = (fault_rates(by_seed, when) for when in ("before", "after"))
    followed = all("blamed_probability" in point for run in by_seed.values() for point in run["curve"])
    for name in ("blamed_probability", "other_probability"):
        row[name] = mean_curve(by_seed, name) if followed else None
    return row


def last(by_seed: BySeed, name: str) -> list[float]:
    """Mean over the held-out prompts after training, for each seed."""
    return [fmean(row[name] for row in by_seed[seed]["after"]) for seed in sorted(by_seed)]


def difference(one: BySeed, other: BySeed, metric: str) -> dict[str, Any]:
    """Return other - one over the seeds that both have, with its 95% interval by a bootstrap over seeds and prompts.

    detectable: the smallest true difference that such an interval would find in four of five cases. at_equal_length:
    what remains of the difference at equal lengths, by regression on the logarithm of their ratio, where the mean
    lengths differ by more than MAX_LENGTH_DIFFERENCE; else None, as where hardly any two answers are of equal length.
    """
    seeds = sorted(set(one) & set(other))
    if not seeds:
        return {"difference": None}
    table = _pairs(one, other, seeds, lambda a, b: b[metric] - a[metric])
    means = np.array([table[np.ix_(*pick)].mean() for pick in _resamples(table.shape)])
    low, high = np.percentile(means, [2.5, 97.5])
    lengths = [fmean(last({s: runs[s] for s in seeds}, "words")) for runs in (one, other)]
    differs = abs(lengths[1] / max(lengths[0], 1e-9) - 1) > MAX_LENGTH_DIFFERENCE
    return {
        "common_seeds": len(seeds),
        "difference": float(table.mean()),
        "low": float(low),
        "high": float(high),
        "detectable": float(POWER * means.std()),
        "at_equal_length": _at_equal_length(one, other, seeds, table) if differs else None,
    }


def _at_equal_length(
    one: BySeed, other: BySeed, seeds: Sequence[int], table: NDArray[np.float64]
) -> dict[str, float] | None:
    ratios = _pairs(one, other, seeds, lambda a, b: math.log((b["words"] + 1) / (a["words"] + 1)))
    shorter, longer = np.percentile(ratios, [OVERLAP, 100 - OVERLAP])
    if shorter > 0 or longer < 0:  # the line would have to be drawn beyond the answers that there are
        return None

    def intercept(pick: tuple[NDArray[np.int64], NDArray[np.int64]]) -> float:
        x, y = ratios[np.ix_(*pick)].ravel(), table[np.ix_(*pick)].ravel()
        slope = np.cov(x, y, bias=True)[0, 1] / x.var() if x.var() > 0 else 0.0
        return float(y.mean() - slope * x.mean())

    everything = np.arange(table.shape[0]), np.arange(table.shape[1])
    low, high = np.percentile([intercept(pick) for pick in _resamples(table.shape)], [2.5, 97.5])
    return {"difference": intercept(everything), "low": float(low), "high": float(high)}


def _pairs(one: BySeed, other: BySeed, seeds: Sequence[int], value: Any) -> NDArray[np.float64]:
    """(seeds, prompts): a value of each pair of answers to the same prompt."""
    return np.array([[value(a, b) for a, b in zip(one[s]["after"], other[s]["after"], strict=True)] for s in seeds])


def _resamples(shape: tuple[int, ...]) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    rng = np.random.default_rng(0)
    return [(rng.integers(shape[0], size=shape[0]), rng.integers(shape[1], size=shape[1])) for _ in range(RESAMPLES)]


def samples_to(ours: Sequence[tuple[float, float]], theirs: Sequence[tuple[float, float]]) -> dict[str, float | None]:
    """Return the samples until the best value of their curve is reached on ours, and as a share of theirs.

    Between two evaluations the curve is a straight line. None: never reached. A share of 0: their best is the start.
    """
    best = max(value for _, value in theirs)
    needed, own = first_at(ours, best), first_at(theirs, best)
    if needed is None:
        return {"samples": None, "share": None}
    return {"samples": needed, "share": needed / own if own else 0.0}


def first_at(curve: Sequence[tuple[float, float]], wanted: float) -> float | None:
    """Return where a curve of (samples, value) first has the value; None if it never does."""
    if curve[0][1] >= wanted:
        return curve[0][0]
    for (x, y), (next_x, next_y) in pairwise(curve):
        if next_y >= wanted:
            return x + (next_x - x) * (wanted - y) / (next_y - y)
    return None


def mean_curve(by_seed: BySeed, metric: str) -> list[tuple[float, float]]:
    """Return (samples, mean over the seeds) at every evaluation."""
    points = zip(*(run["curve"] for run in by_seed.values()), strict=True)
    per_step = next(iter(by_seed.values()))["samples_per_step"]
    return [(per_step * at[0]["step"], fmean(point[metric] for point in at)) for at in points]


def fault_rates(by_seed: BySeed, when: str) -> dict[str, float]:
    """Return how often each kind of fault is named per answer, the most frequent first."""
    rows = [row for run in by_seed.values() for row in run[when]]
    counts: Counter[str] = Counter()
    for row in rows:
        counts.update(row["faults"])
    return {kind: count / len(rows) for kind, count in counts.most_common()}
