"""Does feedback in words beat the same feedback as a number? Training runs, and the page that compares them.

    python benchmarks/evidence.py warm-up --device cuda          the models that all arms of a task start from
    python benchmarks/evidence.py run --task questions --arm "spans local" --said one --seed 10 --device cuda
    python benchmarks/evidence.py jobs --seeds 10-14 > JOBS.json  every run as a command, for a runner of many
    python benchmarks/evidence.py report                          tables, docs/results/evidence.json

Equal terms: the same starting model, prompts, samples per step, critic and critiques. Settings were chosen with seeds
0-2 on one half of the held-out prompts (`--half select`); what is reported comes from seeds 10-14 on the other half.
Every run writes one JSON file into --out, so an interrupted campaign continues; runs that exist are skipped.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from harness import ROOT

SELECT_SEEDS, REPORT_SEEDS = range(3), range(10, 15)


def main() -> None:
    args = parse()
    args.out.mkdir(parents=True, exist_ok=True)
    if args.command == "warm-up":
        from evidence_run import WARM_UP_STEPS, warm_up
        from evidence_tasks import TASKS

        for task in (TASKS[name] for name in args.tasks):
            if task.warm_up and not (args.starts / task.name / "config.json").is_file():
                warm_up(task, args.starts, args.device, 2 if args.quick else WARM_UP_STEPS)
    elif args.command == "run":
        path = args.out / f"{name_of(args.task, args.arm, args.said, args.seed, args.half)}.json"
        if not path.is_file():
            from evidence_run import QUICK_STEPS, STEPS, run

            steps = args.steps or (QUICK_STEPS if args.quick else STEPS)
            result = run(args.task, args.arm, args.said, args.seed, args.half, args.starts, steps, json.loads(args.set))
            path.write_text(json.dumps(result), encoding="utf-8")
    elif args.command == "jobs":
        print(json.dumps(jobs(args), indent=1))
    else:
        from evidence_report import report

        report(args.out, args)


def name_of(task: str, arm: str, said: str, seed: int, half: str) -> str:
    return "-".join([half, task, said, arm.replace(" ", "_").replace(",", ""), str(seed)])


def jobs(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Return a command per run, the seeds outermost so that a campaign cut short has whole rows."""
    found = []
    for seed in args.seeds:
        for task in args.tasks:
            for said in args.sayings:
                for arm in args.arms:
                    command = [sys.executable, __file__, "run", "--task", task, "--arm", arm, "--said", said]
                    command += ["--seed", str(seed), "--half", args.half, "--device", args.device]
                    command += ["--out", str(args.out), "--starts", str(args.starts)]
                    found.append({"name": name_of(task, arm, said, seed, args.half), "command": command})
    return found


def parse() -> argparse.Namespace:
    from evidence_arms import ARMS
    from evidence_tasks import TASKS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["warm-up", "run", "jobs", "report"])
    parser.add_argument("--task", choices=TASKS)
    parser.add_argument("--arm", choices=ARMS)
    parser.add_argument("--said", choices=["all", "one"], default="all", help="faults that the critic names")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--half", choices=["select", "report"], default="report", help="of the held-out prompts")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    parser.add_argument("--sayings", nargs="+", choices=["all", "one"], default=["all", "one"])
    parser.add_argument("--seeds", type=seeds, default=list(REPORT_SEEDS), help="a range such as 10-14, or one seed")
    parser.add_argument("--set", default="{}", help="settings of the trainer as JSON, to tune an arm")
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "evidence")
    parser.add_argument("--starts", type=Path, default=ROOT / "runs" / "evidence-starts")
    parser.add_argument("--quick", action="store_true", help="two steps")
    return parser.parse_args()


def seeds(text: str) -> list[int]:
    first, _, last = text.partition("-")
    return list(range(int(first), int(last or first) + 1))


if __name__ == "__main__":
    main()
