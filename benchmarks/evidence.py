"""Does feedback in words beat the same feedback as a number? Training runs, and the page that compares them.

    python benchmarks/evidence.py warm-up --device cuda           the models that all arms of a task start from
    python benchmarks/evidence.py jobs --half select --sayings all --device cuda > SELECT.json   the selection half
    python benchmarks/evidence.py select                          choose the settings of every arm from these
    python benchmarks/evidence.py jobs --device cuda > JOBS.json  the runs that are reported, then those of further arms
    python benchmarks/evidence.py report                          docs/evidence.md, docs/results/evidence.json
    python benchmarks/evidence.py run --task questions --arm "spans local" --said one --seed 10 --device cuda

`jobs` prints commands in order of priority, for a runner of many processes; `--pack 2` makes two runs per process.

Equal terms: the same starting model, prompts, samples per step, critic and critiques, and three learning rates tried
per arm. They are chosen with seed 0, where everything is said, on one half of the held-out prompts; what is reported
comes from seeds 10-14 on the other half. Every run writes one compressed JSON file into --out, which is committed. Runs
that exist are skipped: an interrupted campaign continues, on another machine too.
"""

from __future__ import annotations

import argparse
import gc
import json
from pathlib import Path

from evidence_plan import (
    FURTHER_ARMS,
    FURTHER_TASK,
    MAIN_ARMS,
    MAIN_TASKS,
    REPORT_SEEDS,
    RUNS_FOLDER,
    Run,
    chosen_settings,
    plan_report,
    plan_selection,
    read_settings,
    to_commands,
    write_run,
)
from harness import ROOT


def main() -> None:
    args = parse()
    if args.command == "warm-up":
        warm_up(args)
    elif args.command == "run":
        run(args)
    elif args.command == "jobs":
        options = ["--device", args.device, "--out", str(args.out), "--starts", str(args.starts)]
        options += ["--quick"] if args.quick else []
        print(json.dumps(to_commands(planned(args), args.pack, options), indent=1))
    elif args.command == "select":
        from evidence_select import select

        select(args.out, args.quick)
    else:
        from evidence_report import report

        report(args.out, args)


def warm_up(args: argparse.Namespace) -> None:
    """Write the starting models that are missing."""
    from evidence_start import warm_up as write
    from evidence_tasks import TASKS

    for task in (TASKS[name] for name in args.tasks or MAIN_TASKS):
        if task.warm_up and not (args.starts / task.name / "config.json").is_file():
            steps, batch = (2, 2) if args.quick else (task.warm_up_steps, 32)
            write(task, args.starts, args.device, steps, batch)


def run(args: argparse.Namespace) -> None:
    """Make runs one after the other; those whose file exists are skipped."""
    import torch
    from evidence_run import QUICK_STEPS, STEPS
    from evidence_run import run as train

    specs = [Run(**fields) for fields in json.loads(args.runs)] if args.runs else [run_of(args)]
    args.out.mkdir(parents=True, exist_ok=True)
    for spec in specs:
        path = args.out / spec.file_name
        if not path.is_file():
            steps = args.steps or (QUICK_STEPS if args.quick else STEPS)
            result = train(spec, args.starts, args.device, steps, args.quick)
            write_run(path, result)
            print(path, f"{result['all_seconds']:.0f} s", flush=True)
            gc.collect()
            torch.cuda.empty_cache()


def run_of(args: argparse.Namespace) -> Run:
    """Return the run that the options describe; without --set with the settings that were chosen."""
    settings = json.loads(args.set) if args.set else chosen_settings(args.task, args.arm, read_settings())
    return Run(args.task, args.arm, args.said, args.seed, args.half, settings)


def planned(args: argparse.Namespace) -> list[Run]:
    """Return the runs of the campaign, those of the main arms before those of the further ones."""
    main_arms = [arm for arm in args.arms or MAIN_ARMS if arm in MAIN_ARMS]
    further = [arm for arm in args.arms or FURTHER_ARMS if arm in FURTHER_ARMS]
    of_campaign = args.tasks or MAIN_TASKS, main_arms, further, args.sayings, args.seeds
    return plan_selection(*of_campaign) if args.half == "select" else plan_report(*of_campaign, read_settings())


def parse() -> argparse.Namespace:
    arms, tasks = [*MAIN_ARMS, *FURTHER_ARMS], [*MAIN_TASKS, "records4"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["warm-up", "run", "jobs", "select", "report"])
    parser.add_argument("--task", choices=tasks, default=FURTHER_TASK)
    parser.add_argument("--arm", choices=arms, default=MAIN_ARMS[0])
    parser.add_argument("--said", choices=["all", "one"], default="all", help="faults that the critic names")
    parser.add_argument("--seed", type=int, default=REPORT_SEEDS[0])
    parser.add_argument("--half", choices=["select", "report"], default="report", help="of the held-out prompts")
    parser.add_argument("--set", help='settings of the trainer as JSON, as {"learning_rate": 1e-4}')
    parser.add_argument("--runs", help="runs as a JSON list, as `jobs` writes it; instead of --task, --arm, ...")
    parser.add_argument("--tasks", nargs="+", choices=tasks, help="of `jobs` and `warm-up`")
    parser.add_argument("--arms", nargs="+", choices=arms, help="of `jobs`")
    parser.add_argument("--sayings", nargs="+", choices=["all", "one"], default=["all", "one"], help="of `jobs`")
    parser.add_argument("--seeds", type=seeds, help="of `jobs`: a range such as 10-14, or one seed")
    parser.add_argument("--pack", type=int, default=1, help="of `jobs`: runs per process, one after the other")
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=RUNS_FOLDER)
    parser.add_argument("--starts", type=Path, default=ROOT / "runs" / "evidence-starts")
    parser.add_argument("--quick", action="store_true", help="two steps of four short answers; save no result")
    return parser.parse_args()


def seeds(text: str) -> list[int]:
    first, _, last = text.partition("-")
    return list(range(int(first), int(last or first) + 1))


if __name__ == "__main__":
    main()
