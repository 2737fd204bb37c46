"""Does feedback in words beat the same feedback as a number? Training runs, and the page that compares them.

    python benchmarks/evidence.py warm-up --device cuda           the models that all arms of a task start from
    python benchmarks/evidence.py reward-model --device cuda      the reward model that two further arms learn from
    python benchmarks/evidence.py jobs --half select --sayings all --device cuda > SELECT.json   the selection half
    python benchmarks/evidence.py select                          choose the settings of every arm from these
    python benchmarks/evidence.py jobs --device cuda > JOBS.json  the runs that are reported, then those of further arms
    python benchmarks/evidence.py report                          docs/evidence.md, docs/results/evidence.json
    python benchmarks/evidence.py run --task questions --arm "spans local" --said one --seed 10 --device cuda

`jobs` prints commands in order of priority, for a runner of several processes. A command makes up to `--pack` runs of
one task in lockstep, which share the model (`stacked_trainer.py`): several times as many runs per minute.

Equal terms: the same starting model, prompts, samples per step, critic and critiques, and three learning rates tried
per arm. They are chosen where everything is said, with another seed and on another half of the held-out prompts than
those that are reported (seeds 10-14). Every run writes one compressed JSON file into --out, which
is committed. Runs that exist are skipped: an interrupted campaign continues, on another machine too.
"""

from __future__ import annotations

import argparse
import json
import sys
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
    elif args.command == "reward-model":
        from evidence_reward import train_reward_model

        train_reward_model(args.starts, args.device, args.quick)
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
    """Make runs whose file does not exist, several in lockstep where their arm allows it."""
    from evidence_run import QUICK_STEPS, STEPS, run_together
    from evidence_run import run as run_alone

    specs = [Run(**fields) for fields in json.loads(args.runs)] if args.runs else [run_of(args)]
    specs = [spec for spec in specs if not (args.out / spec.file_name).is_file()]
    args.out.mkdir(parents=True, exist_ok=True)
    options = args.starts, args.device, args.steps or (QUICK_STEPS if args.quick else STEPS), args.quick
    results = run_together(specs, *options) if len(specs) > 1 else [run_alone(spec, *options) for spec in specs]
    for spec, result in zip(specs, results, strict=True):
        if result is not None:
            write_run(args.out / spec.file_name, result)
            print(spec.file_name, f"{result['all_seconds']:.0f} s", flush=True)
    if None in results:
        sys.exit(f"{results.count(None)} runs failed")


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
    arms, tasks = [*MAIN_ARMS, *FURTHER_ARMS], [*MAIN_TASKS, "records4", "records8"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["warm-up", "reward-model", "run", "jobs", "select", "report"])
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
    parser.add_argument("--pack", type=int, default=12, help="of `jobs`: runs of one task that share a process")
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
