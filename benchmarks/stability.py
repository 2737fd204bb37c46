"""Every task config with every estimator for 100 steps: does training collapse?

A run has collapsed if held-out completions after it are empty, have no code on the code task, are half or twice as long
as before without a better score, or score no better than before. Runs go side by side on a GPU, which is much faster
with NVIDIA MPS running.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import fmean
from typing import Any, NoReturn, get_args

import harness

from text2grad.align.answer.program import extract_program
from text2grad.trainer.advantages import ESTIMATORS, EstimatorName

TASKS = ("quickstart", "summarise", "qa", "code")
STEPS, GROUP = 100, 4
RUNS_AT_ONCE = 20
MAX_LENGTH_RATIO = 2.0
BARS = {
    "failed_runs": harness.Bar(at_most=0),
    "min_non_empty": harness.Bar(at_least=0.95),
    "min_with_code": harness.Bar(at_least=0.9),
    "length_drifts": harness.Bar(at_most=0),
    "min_score_gain": harness.Bar(at_least=0.0),
}


def main() -> None:
    measure("stability", harness.options(__doc__ or ""), TASKS)


def measure(name: str, args: argparse.Namespace, tasks: Sequence[str], settings: Sequence[str] = ()) -> NoReturn:
    """Train every task with every estimator and report the result `name`. settings: changes of the task configs."""
    tasks = tasks[:1] if args.quick else tasks
    jobs = [(task, estimator) for task in tasks for estimator in get_args(EstimatorName)]
    with (
        tempfile.TemporaryDirectory() as folder,
        ThreadPoolExecutor(1 if args.device == "cpu" else RUNS_AT_ONCE) as pool,
    ):
        futures = [pool.submit(train, *job, Path(folder), args.quick, settings) for job in jobs]
        results = [future.result() for future in futures]
    runs, failed = [run for run in results if "error" not in run], [run for run in results if "error" in run]
    for run in failed:
        print(f"{run['task']} with {run['estimator']} failed:\n{run['error']}", file=sys.stderr)
    columns = [
        "task, estimator",
        "score before",
        "after",
        "non-empty",
        "with code",
        "words before",
        "after",
        "reference metric",
    ]
    rows = [
        [
            f"{run['task']}, {run['estimator']}",
            *(f"{run[key]:.3f}" for key in ("score_before", "score_after", "non_empty")),
            "" if run["with_code"] is None else f"{run['with_code']:.3f}",
            *(f"{run[key]:.1f}" for key in ("words_before", "words_after")),
            f"{run['rouge_l_before']:.3f} {run['rouge_l_after']:.3f}",
        ]
        for run in runs
    ]
    harness.show(f"Held-out completions before and after {STEPS} steps", columns, rows)
    figures: dict[str, Any] = {
        "runs": runs,
        "failed_runs": len(failed),
        "min_non_empty": min(run["non_empty"] for run in runs),
        "min_with_code": min((run["with_code"] for run in runs if run["with_code"] is not None), default=1.0),
        "length_drifts": sum(length_drifted(run) for run in runs),
        "min_score_gain": min(run["score_after"] - run["score_before"] for run in runs),
    }
    harness.report(name, figures, {} if args.quick else BARS, args)


def length_drifted(run: dict[str, Any]) -> bool:
    """Whether completions are half or twice as long as before, and no better."""
    ratio = run["words_after"] / run["words_before"]
    return not 1 / MAX_LENGTH_RATIO <= ratio <= MAX_LENGTH_RATIO and run["score_after"] <= run["score_before"]


def train(task: str, estimator: EstimatorName, folder: Path, quick: bool, changes: Sequence[str]) -> dict[str, Any]:
    """Train in a process of its own and return what the held-out completions are like, or an "error"."""
    output = folder / f"{task}-{estimator}"
    settings = [
        f"policy.estimator={estimator}",
        f"policy.max_steps={2 if quick else STEPS}",
        "report.examples=0",
        *changes,
        *([f"policy.num_generations={GROUP}"] if ESTIMATORS[estimator].needs_groups else []),
    ]
    command = [sys.executable, "-m", "text2grad", "run", task, *settings, "-o", str(output)]
    log = output.with_suffix(".log")
    with log.open("w", encoding="utf-8") as out:
        code = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, check=False).returncode
    names = {"task": task, "estimator": estimator}
    if code:
        return names | {"error": log.read_text(encoding="utf-8")[-3000:]}
    found = names | describe(json.loads((output / "evaluation.json").read_text(encoding="utf-8")), task)
    print(json.dumps(found), flush=True)
    return found


def describe(evaluation: dict[str, Any], task: str) -> dict[str, Any]:
    """Return the shares and means of a run's held-out completions."""
    after = [example["after"].get("completion", "") for example in evaluation["examples"]]
    prompts = [str(example["prompt"]) for example in evaluation["examples"]]
    programs = [extract_program(text, prompt, frozenset()) for text, prompt in zip(after, prompts, strict=True)]
    means = {
        f"{name.replace(' ', '_')}_{when}": evaluation["metrics"][name][when]
        for name in ("score", "rouge_l", "words")
        for when in ("before", "after")
    }
    return means | {
        "non_empty": fmean(bool(text.strip()) for text in after),
        "with_code": fmean(program is not None for program in programs) if task == "code" else None,
    }


if __name__ == "__main__":
    main()
