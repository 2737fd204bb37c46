"""Makes all runs of `evidence.py` on one machine: several processes side by side, several runs in lockstep in each.

A run starts once what it needs is there: the starting model of its task, the settings of its arm, which are chosen from
runs on the selection half, or the reward model. Finished runs are files; started again, a campaign makes the others.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from evidence_plan import (
    ALONE,
    MAIN_ARMS,
    REWARD_MODEL,
    SLOW_TASKS,
    UNTRAINED,
    Run,
    Settings,
    chosen_settings,
    is_made,
    plan_selection,
    read_settings,
    settings_key,
)
from harness import commit

SCRIPT = str(Path(__file__).with_name("evidence.py"))
REWARD_MODEL_JOB = "reward-model"
POLL_SECONDS = 1.0
ALONE_AT_ONCE = 2  # processes of one run only: many runs are faster together


@dataclass(frozen=True)
class Job:
    """A process. runs: what it makes; none: it prepares what runs of the same name need."""

    name: str
    arguments: tuple[str, ...]
    runs: tuple[Run, ...] = ()


@dataclass
class Plan:
    """What is still to be made, in order of priority. prepared: names of preparations that are there.

    waiting: runs without their settings, unless they are on the selection half.
    """

    preparations: list[Job]
    waiting: list[Run]
    prepared: set[str] = field(default_factory=set)
    running: list[Job] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)

    def next_job(self, pack: int, chosen: Mapping[str, Settings]) -> Job | None:
        """Take the next job that can start, of up to `pack` runs that share a model; None: wait for one that runs."""
        if self.preparations:
            return self.preparations.pop(0)
        may_be_alone = sum(job.runs[0].arm in ALONE for job in self.running if job.runs) < ALONE_AT_ONCE
        ready = [run for run in self.waiting if self.is_ready(run, chosen) and (may_be_alone or run.arm not in ALONE)]
        if not ready:
            return None
        first = ready[0]
        packed = [first] if first.arm in ALONE else [run for run in ready if _kind(run) == _kind(first)][:pack]
        self.waiting = [run for run in self.waiting if run not in packed]
        runs = [run if run.half == "select" else _with_settings(run, chosen) for run in packed]
        listed = json.dumps([asdict(run) for run in runs])
        more = f"-and-{len(runs) - 1}" if len(runs) > 1 else ""
        return Job(runs[0].name + more, ("run", "--runs", listed), tuple(runs))

    def is_ready(self, run: Run, chosen: Mapping[str, Settings]) -> bool:
        """Whether nothing that a run needs is missing."""
        needed = {REWARD_MODEL_JOB} if run.arm in REWARD_MODEL else {run.task}
        if not needed <= self.prepared:
            return False
        if run.half == "select" or run.arm in UNTRAINED:
            return True
        key = settings_key(run.task, run.arm)
        unfinished = [*self.waiting, *(run for job in self.running for run in job.runs)]
        return key in chosen and all(settings_key(o.task, o.arm) != key for o in unfinished if o.half == "select")

    def try_again(self, job: Job, out: Path) -> None:
        """Let the runs of a job that failed wait once more: it may have found the GPU's memory taken."""
        self.waiting += [run for run in job.runs if not is_made(out, run) and run.name not in self.failed]
        self.failed |= {run.name for run in job.runs}


def _kind(run: Run) -> tuple[str, str, bool, bool]:
    """What runs of one process have in common; those with a reward model as critic wait for each other."""
    return run.task, run.half, run.arm in ALONE, run.arm in REWARD_MODEL


def _with_settings(run: Run, chosen: Mapping[str, Settings]) -> Run:
    return replace(run, settings=chosen_settings(run.task, run.arm, chosen))


def make_plan(
    wanted: Sequence[Run],
    out: Path,
    chosen: Mapping[str, Settings],
    warm_ups: Mapping[str, bool],
    has_reward_model: bool,
) -> Plan:
    """Return what is left to do for the wanted runs. warm_ups: of tasks that need one, whether it is there.

    Runs of further arms come before those of the main ones: they are few, and some of them take long. Slow tasks come
    last.
    """
    in_order = sorted(wanted, key=lambda run: (run.task in SLOW_TASKS, run.arm in MAIN_ARMS))
    missing = [run for run in in_order if not is_made(out, run)]
    selection = [run for run in plan_selection(missing, chosen) if not is_made(out, run)]
    tasks = dict.fromkeys(run.task for run in missing)
    preparations = [Job(task, ("warm-up", "--tasks", task)) for task in tasks if not warm_ups.get(task, True)]
    if any(run.arm in REWARD_MODEL for run in missing) and not has_reward_model:
        preparations.append(Job(REWARD_MODEL_JOB, (REWARD_MODEL_JOB,)))
    prepared = {*tasks, REWARD_MODEL_JOB} - {job.name for job in preparations}
    return Plan(preparations, [*selection, *missing], prepared)


def run_plan(
    plan: Plan,
    out: Path,
    options: Sequence[str],
    settings: Path,
    choose: Callable[[], None],
    at_once: int,
    pack: int,
    seconds: float,
) -> int:
    """Run the jobs of a plan, their output in a folder `logs`, until none is left or time is out. Returns the failures.

    settings: file with the settings that were chosen so far, which `choose` writes.
    Runs that fail are tried once more. What needs a preparation that failed is not made.
    """
    logs = out / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    # Said once: the runs that are written are changes of the tree, and would call all later ones dirty.
    env = {**os.environ, "OMP_NUM_THREADS": "2", "TOKENIZERS_PARALLELISM": "false", "TEXT2GRAD_COMMIT": commit()}
    processes: list[tuple[Job, subprocess.Popen[bytes], float]] = []
    began, failures = time.monotonic(), 0
    try:
        while time.monotonic() - began < seconds:
            while len(processes) < at_once and (job := plan.next_job(pack, read_settings(settings))) is not None:
                plan.running.append(job)
                with (logs / f"{job.name}.log").open("w") as log:
                    command = [sys.executable, SCRIPT, *job.arguments, *options]
                    process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=env)
                processes.append((job, process, time.monotonic()))
            if not processes:
                break
            time.sleep(POLL_SECONDS)
            for finished in [entry for entry in processes if entry[1].poll() is not None]:
                processes.remove(finished)
                job, process, started = finished
                plan.running.remove(job)
                failures += bool(process.returncode)
                if process.returncode:
                    plan.try_again(job, out)
                if not job.runs and not process.returncode:
                    plan.prepared.add(job.name)
                if any(run.half == "select" for run in job.runs):
                    choose()
                took = f"{time.monotonic() - started:.0f} s, {time.monotonic() - began:.0f} s in all"
                print(f"{job.name}: {f'failed, see {logs}' if process.returncode else 'done'}, {took}", flush=True)
    finally:
        for job, process, _ in processes:
            process.kill()
            process.wait()
            print(f"{job.name}: cut off", flush=True)
    print(f"{len(plan.waiting)} runs not started, {len(processes)} jobs cut off, {failures} failed", flush=True)
    return failures
