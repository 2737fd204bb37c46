"""Does feedback in words beat the same feedback as a number? Training runs, and the page that compares them.

    python benchmarks/evidence.py campaign --device cuda          everything that is missing, several runs at once
    python benchmarks/evidence.py report                          docs/evidence.md, docs/results/evidence.json
    python benchmarks/evidence.py run --task questions --arm "spans local" --said one --seed 10 --device cuda

Parts of a campaign: `warm-up`, the models that all arms of a task start from; `reward-model`, from which two further
arms learn; `run`; `select`, which chooses the settings of every arm from runs on the selection half. A process makes up
to `--pack` runs of one task in lockstep, which share the model (`stacked_trainer.py`): many more runs per minute.

Equal terms: the same starting model, prompts, samples per step, critic and critiques, and as many settings tried for
each arm of a task. They are chosen where everything is said, with another seed and on another half of the held-out
prompts than those that are reported (seeds 10-14). Every run writes one compressed JSON file into --out; those that
are reported are committed. Runs that exist are skipped: an interrupted campaign continues, on another machine too.
"""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial
from pathlib import Path

from evidence_plan import (
    FURTHER_ARMS,
    FURTHER_TASK,
    MAIN_ARMS,
    MAIN_TASKS,
    REPORT_SEEDS,
    RUNS_FOLDER,
    SETTINGS_FILE,
    Run,
    chosen_settings,
    is_made,
    plan_report,
    read_settings,
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
    elif args.command == "campaign":
        campaign(args)
    elif args.command == "select":
        from evidence_select import select

        select(args.out, args.quick, settings_file(args))
    else:
        from evidence_report import report

        report(args.out, args)


def warm_up(args: argparse.Namespace) -> None:
    """Write the starting models that are missing."""
    from evidence_start import warm_up as write
    from evidence_tasks import TASKS

    for task in (TASKS[name] for name in args.tasks or MAIN_TASKS):
        if task.warm_up and not has_start(args.starts, task.name):
            steps, batch = (2, 2) if args.quick else (task.warm_up_steps, 32)
            write(task, args.starts, args.device, steps, batch)


def run(args: argparse.Namespace) -> None:
    """Make the runs of one task whose file does not exist, several in lockstep where their arm allows it."""
    from evidence_run import QUICK_STEPS, run_together
    from evidence_run import run as run_alone
    from evidence_tasks import TASKS

    specs = [Run(**fields) for fields in json.loads(args.runs)] if args.runs else [run_of(args)]
    specs = [spec for spec in specs if not is_made(args.out, spec)]
    if not specs:
        return
    args.out.mkdir(parents=True, exist_ok=True)
    steps = args.steps or (QUICK_STEPS if args.quick else TASKS[specs[0].task].steps)
    options = args.starts, args.device, steps, args.quick
    results = run_together(specs, *options) if len(specs) > 1 else [run_alone(spec, *options) for spec in specs]
    for spec, result in zip(specs, results, strict=True):
        if result is not None:
            write_run(args.out / spec.file_name, result)
            print(spec.file_name, f"{result['all_seconds']:.0f} s", flush=True)
    if None in results:
        sys.exit(f"{results.count(None)} runs failed")


def run_of(args: argparse.Namespace) -> Run:
    """Return the run that the options describe; without --set with the settings that were chosen."""
    settings = (
        json.loads(args.set) if args.set else chosen_settings(args.task, args.arm, read_settings(settings_file(args)))
    )
    return Run(args.task, args.arm, args.said, args.seed, args.half, settings)


def campaign(args: argparse.Namespace) -> None:
    """Make the runs that are missing, and what they need."""
    from evidence_campaign import make_plan, run_plan
    from evidence_select import select
    from evidence_tasks import TASKS

    arms = args.arms or [*MAIN_ARMS, *FURTHER_ARMS]
    main_arms, further = ([arm for arm in arms if arm in group] for group in (MAIN_ARMS, FURTHER_ARMS))
    wanted = plan_report(args.tasks or MAIN_TASKS, main_arms, further, args.sayings, args.seeds)
    warm_ups = {task.name: has_start(args.starts, task.name) for task in TASKS.values() if task.warm_up}
    has_reward_model = (args.starts / "reward-model" / "training.json").is_file()
    plan = make_plan(wanted, args.out, read_settings(settings_file(args)), warm_ups, has_reward_model)
    options = ["--device", args.device, "--out", str(args.out), "--starts", str(args.starts)]
    options += ["--quick"] if args.quick else []
    choose = partial(select, args.out, args.quick, settings_file(args))
    sys.exit(
        bool(run_plan(plan, args.out, options, settings_file(args), choose, args.at_once, args.pack, args.seconds))
    )


def settings_file(args: argparse.Namespace) -> Path:
    """Return where the chosen settings are; those of dry runs stay with them."""
    return args.out / SETTINGS_FILE.name if args.quick else SETTINGS_FILE


def has_start(starts: Path, task: str) -> bool:
    """Whether `warm_up` has written the starting model of a task; its fingerprint is written last."""
    return (starts / task / "fingerprint.txt").is_file()


def parse() -> argparse.Namespace:
    arms, tasks = [*MAIN_ARMS, *FURTHER_ARMS], [*MAIN_TASKS, "records4", "records8"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["campaign", "warm-up", "reward-model", "run", "select", "report"])
    parser.add_argument("--task", choices=tasks, default=FURTHER_TASK)
    parser.add_argument("--arm", choices=arms, default=MAIN_ARMS[0])
    parser.add_argument("--said", choices=["all", "one"], default="all", help="faults that the critic names")
    parser.add_argument("--seed", type=int, default=REPORT_SEEDS[0])
    parser.add_argument("--half", choices=["select", "report"], default="report", help="of the held-out prompts")
    parser.add_argument("--set", help='settings of the trainer as JSON, as {"learning_rate": 1e-4}')
    parser.add_argument("--runs", help="runs as a JSON list; instead of --task, --arm, ...")
    parser.add_argument("--tasks", nargs="+", choices=tasks, help="of `campaign` and `warm-up`")
    parser.add_argument("--arms", nargs="+", choices=arms, help="of `campaign`")
    parser.add_argument("--sayings", nargs="+", choices=["all", "one"], default=["all", "one"], help="of `campaign`")
    parser.add_argument("--seeds", type=seeds, help="of `campaign`: a range such as 10-14, or one seed")
    parser.add_argument("--pack", type=int, default=15, help="of `campaign`: runs of one task that share a process")
    parser.add_argument("--at-once", type=int, default=8, help="of `campaign`: processes side by side")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="of `campaign`: stop after this time")
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
