"""How fast is learning from corrections? Span credit with and without them, and fine-tuning on the same information.

All arms start from the same model and sample the same number of answers, on which the same critic comments once; each
makes one update per step, with a learning rate that was chosen for it on other seeds (`--tune`).

    spans               span credit
    spans, corrections  span credit and the correction loss
    corrections         the correction loss alone
    whole answers       supervised fine-tuning on the answers with the named faults corrected
    replacements        the same, with a loss on the tokens of the corrections alone

The critic names every fault of an answer, or one of them at random, as people do. Measured are the held-out score by
the critic that sees every fault; the steps after which an arm reaches the last score of span credit; the difference at
half of the steps, with its interval over seeds and prompts; and, for a real model, how far it has drifted on another
task.

Each run is kept as a JSON file in --runs, and one that is there is not repeated: the benchmark can be stopped, and
parts of it (`--only`) can be run on several machines.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import harness
import torch
from corrections_supervised import supervised_step
from corrections_tasks import TASKS, make_trainer, measure_drift

from text2grad.critics.base import collect_feedback
from text2grad.evaluation.significance import paired_bootstrap

SPANS, BOTH = "spans", "spans, corrections"
SUPERVISED = ("whole answers", "replacements")
FAULTS = ("every", "one")
SEEDS, BATCHES = range(5), (8, 32)
RUNS = harness.ROOT / "runs" / "corrections_learning"
RATES_FILE = Path(__file__).with_name("corrections_rates.json")  # written by --tune


class Setup(NamedTuple):
    """One run."""

    task: str
    faults: str
    batch: int
    arm: str
    seed: int
    rate: float
    steps: int
    device: str

    @property
    def name(self) -> str:
        arm = self.arm.replace(", ", "-").replace(" ", "-")
        return f"{self.task}-{self.faults}-{self.batch}-{arm}-{self.seed}-{self.rate:g}-{self.steps}.json"


def main() -> None:
    args = options()
    if args.tune:
        tune(args)
        return
    task = TASKS[args.task]
    steps, seeds, batches = (10, range(1), (8,)) if args.quick else (task.steps, SEEDS, BATCHES)
    rates = read_rates().get(args.task)
    if rates is None:
        sys.exit(f"{RATES_FILE}: no learning rates for {args.task}; run with --tune first")
    setups = [
        Setup(args.task, faults, batch, arm, seed, rates[f"{faults} {batch} {arm}"], steps, args.device)
        for seed, faults, batch, arm in product(seeds, FAULTS, batches, task.arms)
    ]
    if args.only:
        list(run_all([setup for setup in setups if args.only in setup.name], args.runs, args.parallel))
        return
    runs = dict(zip(setups, run_all(setups, args.runs, args.parallel), strict=True))
    results: dict[str, Any] = {"task": args.task, "steps": steps, "regimes": {}}
    bars: dict[str, harness.Bar] = {}
    for faults, batch in product(FAULTS, batches):
        of_regime = {
            arm: [run for s, run in runs.items() if (s.faults, s.batch, s.arm) == (faults, batch, arm)]
            for arm in task.arms
        }
        regime = compare(of_regime, task.every)
        results["regimes"][f"{faults}_{batch}"] = regime
        show(f"{args.task}: {faults} fault named, batches of {batch}", regime)
        key = f"{faults}_{batch}"
        results |= {f"steps_share_{key}": regime["steps_share"], f"gain_low_{key}": regime["gain"]["low"]}
        bars |= {
            f"steps_share_{key}": harness.Bar(at_most=0.75 if (faults, batch) == ("every", 32) else 0.5),
            f"gain_low_{key}": harness.Bar(at_least=0.0),
        }
    harness.report(f"corrections_learning_{args.task}", results, {} if args.quick else bars, args)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="device of the models: cpu, cuda (default: cpu)")
    parser.add_argument("--quick", action="store_true", help="a few steps of one seed; save no result")
    parser.add_argument("--task", choices=list(TASKS), default="copy_fields")
    parser.add_argument("--tune", action="store_true", help="choose the learning rates on other seeds")
    parser.add_argument("--only", help="make only the runs with this in their names, and report nothing")
    parser.add_argument("--runs", type=Path, default=RUNS, help="folder of the finished runs")
    parser.add_argument("--parallel", type=int, default=len(os.sched_getaffinity(0)), help="runs at a time")
    return parser.parse_args()


def tune(args: argparse.Namespace) -> None:
    """Choose for each arm the rate with the best mean score over the course of training, and save it."""
    task = TASKS[args.task]
    batches, seeds = ((8,), task.tuning_seeds[:1]) if args.quick else (BATCHES, task.tuning_seeds)
    regimes = list(product(FAULTS, batches, task.arms))
    setups = [
        Setup(args.task, *regime, seed, rate, task.tuning_steps, args.device)
        for regime in regimes
        for rate in task.rates
        for seed in seeds
    ]
    runs = dict(zip(setups, run_all(setups, args.runs, args.parallel), strict=True))
    chosen = {}
    rows = []
    for regime in regimes:
        scores = {
            rate: fmean(fmean(run["curve"]) for s, run in runs.items() if (*s[1:4], s.rate) == (*regime, rate))
            for rate in task.rates
        }
        best = max(scores, key=lambda rate: scores[rate])
        chosen[" ".join(map(str, regime))] = best
        rows.append([" ".join(map(str, regime)), f"{best:g}", *(f"{score:.3f}" for score in scores.values())])
    harness.show("Mean score over training, by learning rate", ["", "best", *(f"{r:g}" for r in task.rates)], rows)
    if not args.quick:
        RATES_FILE.write_text(json.dumps(read_rates() | {args.task: chosen}, indent=2) + "\n", encoding="utf-8")


def read_rates() -> dict[str, dict[str, float]]:
    """Return the chosen learning rates of each task."""
    rates: dict[str, dict[str, float]] = {}
    return json.loads(RATES_FILE.read_text(encoding="utf-8")) if RATES_FILE.exists() else rates


def run_all(setups: Sequence[Setup], folder: Path, parallel: int) -> Iterator[dict[str, Any]]:
    """Yield the result of each run, in order; those that are not in the folder yet are made."""
    folder.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(parallel, get_context("spawn"), torch.set_num_threads, (1,)) as pool:
        yield from pool.map(run, setups, [folder] * len(setups))


def run(setup: Setup, folder: Path) -> dict[str, Any]:
    """Train one arm. Returns its held-out scores over time, those of each prompt at half of the time, and its drift."""
    path = folder / setup.name
    if path.exists():
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return found
    task = TASKS[setup.task]
    trainer, heldout, judge = make_trainer(setup)
    scores = [score(trainer, heldout, judge)]
    for step in range(1, setup.steps + 1):
        if setup.arm in SUPERVISED:
            supervised_step(trainer, step, replacements_only=setup.arm == "replacements")
        else:
            trainer.step(step)
        if step % task.every == 0:
            scores.append(score(trainer, heldout, judge))
    result = {
        "setup": setup._asdict(),
        "curve": [fmean(by_prompt) for by_prompt in scores],
        "half": scores[len(scores) // 2],
        "last": scores[-1],
        "drift": measure_drift(trainer, task),
        "machine": harness.machine(setup.device),
        "commit": harness.commit(),
    }
    path.with_suffix(".part").write_text(json.dumps(result), encoding="utf-8")
    path.with_suffix(".part").replace(path)
    return result


def score(trainer: Any, heldout: Sequence[Any], judge: Any) -> list[float]:
    """The score of a sampled completion of each prompt."""
    completed = trainer.generate(heldout, trainer.args.temperature, batch_size=len(heldout))
    return [feedback.score or 0.0 for feedback in collect_feedback(judge, completed)]


def compare(runs: dict[str, list[dict[str, Any]]], every: int) -> dict[str, Any]:
    """Scores of all arms, and corrections against spans alone."""
    arms = {
        arm: {
            "curve": [fmean(scores) for scores in zip(*(run["curve"] for run in of_arm), strict=True)],
            "last": [run["curve"][-1] for run in of_arm],
            "drift": {name: fmean(run["drift"][name] for run in of_arm) for name in of_arm[0]["drift"]},
        }
        for arm, of_arm in runs.items()
    }
    # The last score is the mean of the last three measurements: one alone is noisy.
    targets = [fmean(run["curve"][-3:]) for run in runs[SPANS]]
    for arm, of_arm in runs.items():
        arms[arm]["steps"] = [
            next((i * every for i, reached in enumerate(run["curve"]) if reached >= target), None)
            for run, target in zip(of_arm, targets, strict=True)
        ]
    total = (len(runs[SPANS][0]["curve"]) - 1) * every
    shares = [(total if steps is None else steps) / total for steps in arms[BOTH]["steps"]]
    spans, both = ([score for run in runs[arm] for score in run["half"]] for arm in (SPANS, BOTH))
    gain = paired_bootstrap(spans, both, resamples=2000, seed=0)
    return {"arms": arms, "steps_share": fmean(shares), "gain": gain._asdict()}


def show(title: str, regime: dict[str, Any]) -> None:
    rows = []
    for name, arm in regime["arms"].items():
        curve = arm["curve"]
        at = [curve[len(curve) // 4], curve[len(curve) // 2], curve[-1]]
        steps = " ".join("-" if steps is None else str(steps) for steps in arm["steps"])
        drift = " ".join(f"{value:.3f}" for value in arm["drift"].values())
        rows.append([name, *(f"{value:.3f}" for value in at), steps, drift])
    harness.show(title, ["arm", "1/4", "1/2", "last", "steps to the last score of spans", "drift"], rows)
    gain = regime["gain"]
    print(
        f"corrections - none at half of the steps: {gain['difference']:+.3f} [{gain['low']:+.3f}, {gain['high']:+.3f}]"
    )


if __name__ == "__main__":
    main()
