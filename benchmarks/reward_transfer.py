"""Does the span reward model find faults in kinds of text that it was not trained on?

Leaves one data set out at a time, trains on the others (the training rows of DeFacto, four fifths of HaluQuestQA,
FGRLHF and DebugBench), and measures the average precision of blamed words on the set that was left out: DeFacto's
validation rows, the held-out fifth of the others (and all of their rows). With twice as many texts corrupted by rule,
and without, same number of steps, three seeds. No text of the set that is left out is corrupted either. Then, trained
on all sets with as many corrupted texts: DeFacto's validation rows, and the corrections that the model writes on
corrupted texts of held-out documents; one is right if the text then reads as it did before it was corrupted.
HaluQuestQA's licence keeps models trained on it from being published with this project; all models are deleted.

    python benchmarks/reward_transfer.py jobs DIR > JOBS.json                 # one process each, in any order
    python benchmarks/reward_transfer.py run --left-out defacto --corruptions 1 --seed 0 --device cuda --out DIR
    python benchmarks/reward_transfer.py report DIR --device cuda
    python benchmarks/reward_transfer.py all DIR --device cuda                # all of it, one after the other
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

from harness import Bar, report, show
from reward_transfer_job import LEFT_OUT, run

SEEDS = (0, 1, 2)
T_95_TWO_DEGREES = 4.303
BARS = {
    "defacto_left_out": Bar(at_least=0.36),
    "haluquestqa_left_out": Bar(at_least=0.18),
    "fgrlhf_left_out": Bar(at_least=0.56),
    "gain_low": Bar(at_least=0.0),
    "defacto_trained_on": Bar(at_least=0.55),
    "replacements_right": Bar(at_least=0.5),
    "parse_rate": Bar(at_least=1.0),
    "corrupted_per_second": Bar(at_least=200),
}


def main() -> None:
    args = parse_arguments()
    if args.command == "jobs":
        print(json.dumps([describe_job(job, args.folder, args.device) for job in all_jobs()], indent=1))
    elif args.command == "run":
        run_job((args.left_out, bool(args.corruptions), args.seed), args)
    else:
        if args.command == "all":
            for job in [job for job in all_jobs() if not args.quick or job[2] == 0]:
                run_job(job, args)
        collect(args)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("jobs", "run", "report", "all"):
        command = commands.add_parser(name)
        command.add_argument("--device", default="cuda" if name == "jobs" else "cpu")
        command.add_argument("--quick", action="store_true", help="a few rows and steps; no result is saved")
        command.add_argument("--steps", type=int, help="instead of the usual number")
        if name == "run":
            command.add_argument("--left-out", choices=[*LEFT_OUT, "none"], required=True)
            command.add_argument("--corruptions", type=int, choices=(0, 1), required=True)
            command.add_argument("--seed", type=int, required=True)
            command.add_argument("--out", type=Path, dest="folder", required=True)
        else:
            command.add_argument("folder", type=Path)
    return parser.parse_args()


def all_jobs() -> list[tuple[str, bool, int]]:
    """Return (left out, with corruptions, seed) of every training; the longest first."""
    jobs = [("none", True, seed) for seed in SEEDS]
    return jobs + [(name, corruptions, seed) for seed in SEEDS for name in LEFT_OUT for corruptions in (True, False)]


def job_name(left_out: str, corruptions: bool, seed: int) -> str:
    return f"{left_out}-{'with' if corruptions else 'without'}-{seed}"


def describe_job(job: tuple[str, bool, int], folder: Path, device: str) -> dict[str, Any]:
    """Return the command of one training, for a runner of many."""
    left_out, corruptions, seed = job
    command = [sys.executable, str(Path(__file__).resolve()), "run", "--left-out", left_out]
    command += ["--corruptions", str(int(corruptions)), "--seed", str(seed), "--device", device, "--out", str(folder)]
    return {"name": job_name(*job), "command": command, "env": {}}


def run_job(job: tuple[str, bool, int], args: argparse.Namespace) -> None:
    """Train and evaluate, unless an earlier call has."""
    out = args.folder / f"{job_name(*job)}.json"
    args.folder.mkdir(parents=True, exist_ok=True)
    if not out.exists():
        run(*job, device=args.device, out=out, quick=args.quick, steps=args.steps or (3 if args.quick else None))


def collect(args: argparse.Namespace) -> None:
    """Read the results, print the tables, and report."""
    paths = {job: args.folder / f"{job_name(*job)}.json" for job in all_jobs()}
    missing = [path.name for path in paths.values() if not path.exists()]
    if missing and not args.quick:
        sys.exit(f"{args.folder}: {len(missing)} results are missing: {', '.join(missing)}; run them first")
    results = {job: json.loads(path.read_text(encoding="utf-8")) for job, path in paths.items() if path.exists()}
    figures = {"left_out": {name: left_out_figures(results, name) for name in LEFT_OUT}}
    seeds = [seed for seed in SEEDS if all((name, w, seed) in results for name in LEFT_OUT for w in (True, False))]
    gains = [mean(left_out_ap(results, name, seed, "gain") for name in LEFT_OUT) for seed in seeds]
    half_width = T_95_TWO_DEGREES * stdev(gains) / len(gains) ** 0.5 if len(gains) > 2 else 0.0
    trained = [results["none", True, seed] for seed in SEEDS if ("none", True, seed) in results]
    totals = {name: sum(sum(row["written"][name].values()) for row in trained) for name in ("spans", "found", "right")}
    figures |= {
        **{f"{name}_left_out": figures["left_out"][name]["with_mean"] for name in LEFT_OUT},
        "with_mean": mean(figures["left_out"][name]["with_mean"] for name in LEFT_OUT),
        "without_mean": mean(figures["left_out"][name]["without_mean"] for name in LEFT_OUT),
        "gains": gains,
        "gain_low": mean(gains) - half_width,
        "trained_on": {
            name: [row["sets"][name]["average_precision"] for row in trained] for name in trained[0]["sets"]
        },
        "defacto_trained_on": mean(row["sets"]["defacto"]["average_precision"] for row in trained),
        "spans": totals["spans"],
        "found": totals["found"],
        "replacements_right": totals["right"] / max(totals["found"], 1),
        "by_kind": by_kind(trained),
        "parse_rate": min(row["written"]["parse_rate"] for row in trained),
        "critiques": sum(row["written"]["critiques"] for row in trained),
        "corrupted_per_second": median(row["corrupted_per_second"] for row in results.values() if row["corruptions"]),
        "steps": sorted({row["steps"] for row in results.values()}),
        "seconds": {job_name(*job): round(row["seconds"], 1) for job, row in results.items()},
    }
    _show(figures)
    report("reward_transfer", figures, BARS, args)


def left_out_ap(results: dict[tuple[str, bool, int], Any], name: str, seed: int, which: str) -> float:
    """Return the average precision on the set that was left out, with or without corruptions, or the difference."""
    values = [float(results[name, w, seed]["sets"][name]["average_precision"]) for w in (True, False)]
    return {"with": values[0], "without": values[1], "gain": values[0] - values[1]}[which]


def left_out_figures(results: dict[tuple[str, bool, int], Any], name: str) -> dict[str, Any]:
    """Return what was measured on one set that was left out."""
    row: dict[str, Any] = {}
    for label, corruptions in (("with", True), ("without", False)):
        runs = [results[name, corruptions, seed] for seed in SEEDS if (name, corruptions, seed) in results]
        row[label] = [run["sets"][name]["average_precision"] for run in runs]
        row[f"{label}_mean"] = mean(row[label])
        row[f"{label}_ece"] = mean(run["sets"][name]["ece"] for run in runs)
        row[f"{label}_whole_set"] = [run["whole_set"]["average_precision"] for run in runs if "whole_set" in run]
        row[f"{label}_distance_auroc"] = [run["distance_auroc"] for run in runs]
        row[f"{label}_trust"] = mean(run["sets"][name]["trust"] for run in runs)
        others = [run["sets"][other]["trust"] for run in runs for other in run["sets"] if other != name]
        row[f"{label}_trust_elsewhere"] = mean(others)
        row["guesses"], row["frequency"] = runs[0]["guesses"], runs[0]["sets"][name]["frequency"]
    return row


def by_kind(trained: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """Return how many corrupted spans there were, were found, and were corrected, by kind."""
    kinds = sorted({kind for row in trained for kind in row["written"]["spans"]})
    counts = ("spans", "found", "right")
    return {
        kind: {name: sum(row["written"][name].get(kind, 0) for row in trained) for name in counts} for kind in kinds
    }


def _show(figures: dict[str, Any]) -> None:
    rows = [
        [
            name,
            f"{row['frequency']:.3f}",
            f"{max(row['guesses'].values()):.3f}",
            " ".join(f"{value:.3f}" for value in row["without"]),
            " ".join(f"{value:.3f}" for value in row["with"]),
            f"{row['with_mean'] - row['without_mean']:+.3f}",
            f"{row['with_trust']:.2f} {row['with_trust_elsewhere']:.2f}",
        ]
        for name, row in figures["left_out"].items()
    ]
    columns = ["left out", "base rate", "best guess", "without", "with corruptions", "gain", "trust here, elsewhere"]
    show("Average precision of blamed words on a set that was left out", columns, rows)
    rows = [
        [kind, *(str(row[name]) for name in ("spans", "found", "right"))] for kind, row in figures["by_kind"].items()
    ]
    show("Corrections on unseen texts", ["kind", "spans", "found", "right"], rows)


if __name__ == "__main__":
    main()
