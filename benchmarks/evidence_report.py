"""Tables and bars of `evidence.py` from its run files."""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import harness
import numpy as np
from evidence_tasks import TASKS

RESAMPLES = 2_000
SCALAR_ARMS = ("scalar rloo", "scalar ppo")
Runs = Mapping[str, Mapping[int, Any]]  # arm -> seed -> run


def report(folder: Path, args: argparse.Namespace) -> None:
    """Print a table per task and saying, and write docs/results/evidence.json."""
    found: dict[tuple[str, str], dict[str, dict[int, Any]]] = defaultdict(lambda: defaultdict(dict))
    for path in sorted(folder.glob("report-*.json")):
        run = json.loads(path.read_text(encoding="utf-8"))
        found[run["task"], run["said"]][run["arm"]][run["seed"]] = run
    results = {f"{task}, {said}": compare(task, runs) for (task, said), runs in sorted(found.items())}
    for name, rows in results.items():
        show(name, rows)
    harness.report("evidence", {"comparisons": results}, {}, args)


def compare(task: str, runs: Runs) -> list[dict[str, Any]]:
    """Return a row per arm: its metrics, and its difference from the best scalar arm, seed by seed and prompt by
    prompt."""
    metric = next(iter(TASKS[task].metrics))
    scalars = {arm: fmean(last(runs[arm], metric)) for arm in SCALAR_ARMS if arm in runs}
    best = max(scalars, key=lambda arm: scalars[arm]) if scalars else None
    rows = []
    for arm, by_seed in runs.items():
        row: dict[str, Any] = {"arm": arm, "seeds": sorted(by_seed)}
        for name in (*TASKS[task].metrics, "score", "words"):
            row[name] = fmean(last(by_seed, name))
            row[f"{name}_by_seed"] = last(by_seed, name)
            row[f"{name}_before"] = fmean(fmean(r[name] for r in run["before"]) for run in by_seed.values())
        row["kl"] = fmean(fmean(item["kl"] for item in run["logged"][-10:]) for run in by_seed.values())
        row["seconds"] = fmean(run["seconds"] for run in by_seed.values())
        if best and arm != best:
            difference, low, high, detectable = paired(runs[best], by_seed, metric)
            row |= {"against": best, "difference": difference, "low": low, "high": high, "detectable": detectable}
            row["samples_to_scalars_best"] = samples_share(by_seed, runs[best], metric)
        rows.append(row)
    return rows


def last(by_seed: Mapping[int, Any], name: str) -> list[float]:
    """Mean over the held-out prompts after training, for each seed."""
    return [fmean(row[name] for row in by_seed[seed]["after"]) for seed in sorted(by_seed)]


def paired(one: Mapping[int, Any], other: Mapping[int, Any], metric: str) -> tuple[float, float, float, float]:
    """Difference other - one with its 95% interval by a bootstrap over seeds and prompts, and the smallest true
    difference that such an interval would find in four of five cases."""
    seeds = sorted(set(one) & set(other))
    table = np.array(
        [[b[metric] - a[metric] for a, b in zip(one[s]["after"], other[s]["after"], strict=True)] for s in seeds]
    )
    rng = np.random.default_rng(0)
    means = np.empty(RESAMPLES)
    for i in range(RESAMPLES):
        rows = rng.integers(len(table), size=len(table))
        columns = rng.integers(table.shape[1], size=table.shape[1])
        means[i] = table[np.ix_(rows, columns)].mean()
    low, high = np.percentile(means, [2.5, 97.5])
    return float(table.mean()), float(low), float(high), float(2.8 * means.std())


def samples_share(by_seed: Mapping[int, Any], scalar: Mapping[int, Any], metric: str) -> float | None:
    """Steps after which the mean curve first reaches the scalar arm's best, as a share of the scalar arm's own."""
    ours, theirs = mean_curve(by_seed, metric), mean_curve(scalar, metric)
    best = max(theirs.values())
    needed = next((step for step, value in ours.items() if value >= best), None)
    return None if needed is None else needed / next(step for step, value in theirs.items() if value >= best)


def mean_curve(by_seed: Mapping[int, Any], metric: str) -> dict[int, float]:
    curves: Sequence[Sequence[Mapping[str, float]]] = [run["curve"] for run in by_seed.values()]
    return {int(points[0]["step"]): fmean(p[metric] for p in points) for points in zip(*curves, strict=True)}


def show(name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    metric = next(iter(TASKS[name.partition(",")[0]].metrics))
    columns = ["arm", "seeds", metric, "against scalar", "95%", "detectable", "critic score", "words", "KL"]
    table = [
        [
            row["arm"],
            str(len(row["seeds"])),
            f"{row[metric]:.3f}",
            f"{row['difference']:+.3f}" if "difference" in row else "",
            f"{row['low']:+.3f} to {row['high']:+.3f}" if "low" in row else "",
            f"{row['detectable']:.3f}" if "detectable" in row else "",
            f"{row['score']:.3f}",
            f"{row['words']:.1f}",
            f"{row['kl']:.2f}",
        ]
        for row in rows
    ]
    harness.show(name, columns, table)
