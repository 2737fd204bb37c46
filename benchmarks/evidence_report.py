"""The report of `evidence.py`: reads its run files, and writes docs/evidence.md, its plots and the result."""

from __future__ import annotations

import argparse
import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import harness
from evidence_page import write_page
from evidence_plan import (
    FURTHER_TASKS,
    HOLISTIC,
    MAIN_ARMS,
    MAIN_TASKS,
    OURS,
    REPORT_SEEDS,
    SETTINGS_FILE,
    SPANS_ALONE,
    plan_report,
    read_run,
)
from evidence_stats import MAX_LENGTH_DIFFERENCE, Runs, compare, difference, mean_curve
from evidence_tasks import TASKS
from plots import Lines, line_plot

DOCS = harness.ROOT / "docs"
RECORDS = ("records16",)
REAL = ("summaries", "questions", "code")
PAIRS = (  # question, arm, arm that should be ahead of it
    ("Do corrections add to span credit?", SPANS_ALONE, OURS),
    ("Is a comment worth as much as the full critic's number?", HOLISTIC, OURS),
    ("Does reach matter, with corrections?", "corrections local", OURS),
    ("Does reach matter, without?", "spans local", SPANS_ALONE),
    ("Does the place of spans matter?", "spans moved", SPANS_ALONE),
    ("Is correcting in place better than fine-tuning on corrected answers?", "ILF", OURS),
)
Comparisons = Mapping[tuple[str, str], list[dict[str, Any]]]
BARS = {
    "ahead_on_real_tasks_all": harness.Bar(at_least=2),
    "ahead_on_records_all": harness.Bar(at_least=len(RECORDS)),
    "worse": harness.Bar(at_most=0),
    "ahead_one": harness.Bar(at_least=len(MAIN_TASKS)),
    "half_of_the_samples": harness.Bar(at_least=2 * len(MAIN_TASKS)),
    "corrections_over_spans": harness.Bar(at_least=2),
    "corrections_over_ilf": harness.Bar(at_least=2),
    "length_not_controlled": harness.Bar(at_most=0),
}


def report(folder: Path, args: argparse.Namespace) -> None:
    """Write the page, its plots and the result, and exit with 1 where a bar is missed."""
    found = read_runs(folder, args.quick)
    missing = missing_runs(found)
    comparisons = {key: compare(runs, metrics_of(key[0])) for key, runs in found.items()}
    figures = {
        **aims(comparisons, found),
        "runs": sum(len(by_seed) for runs in found.values() for by_seed in runs.values()),
        "missing_runs": len(missing),
    }
    tables = {f"{task}, {said}": rows for (task, said), rows in comparisons.items()}
    all_runs = [run for runs in found.values() for by_seed in runs.values() for run in by_seed.values()]
    settings = json.loads(SETTINGS_FILE.read_text(encoding="utf-8"))["chosen"] if SETTINGS_FILE.is_file() else {}
    page = write_page(comparisons, list(pairs(found)), figures, BARS, missing, settings, all_runs)
    if args.quick:
        print(page)
    else:
        (DOCS / "evidence.md").write_text(page, encoding="utf-8")
        for name, picture in draw(found):
            (DOCS / "pictures" / name).write_text(picture, encoding="utf-8")
    where = {key: _most_frequent(all_runs, key) for key in ("machine", "commit")} if all_runs else {}
    harness.report(
        "evidence", {**figures, "comparisons": tables}, {} if args.quick else BARS, args, complete=not missing, **where
    )


def _most_frequent(runs: Sequence[Mapping[str, Any]], key: str) -> Any:
    """Return the value that most runs have."""
    values = [run[key] for run in runs]
    return max(values, key=values.count)


def read_runs(folder: Path, quick: bool) -> dict[tuple[str, str], dict[str, dict[int, Any]]]:
    """Return the runs by task and saying, arm and seed, in the order of the plan. quick: dry runs too."""
    found: dict[tuple[str, str], dict[str, dict[int, Any]]] = defaultdict(lambda: defaultdict(dict))
    for run in plan_report(seeds=REPORT_SEEDS):
        path = folder / run.file_name
        if path.is_file():
            content = read_run(path)
            if quick or not content["quick"]:
                found[run.task, run.said][run.arm][run.seed] = content
    return {key: dict(runs) for key, runs in found.items()}


def missing_runs(found: Mapping[tuple[str, str], Runs]) -> list[str]:
    """Return the names of the runs that a complete report needs and that have not been made."""
    return [run.name for run in plan_report() if run.seed not in found.get((run.task, run.said), {}).get(run.arm, {})]


def metrics_of(task: str) -> list[str]:
    return list(TASKS[task].metrics)


def aims(comparisons: Comparisons, found: Mapping[tuple[str, str], Runs]) -> dict[str, int]:
    """Return what the bars are about: on how many tasks our default is ahead of the best scalar arm, and so on."""
    ours = {key: row for key, rows in comparisons.items() for row in rows if row["arm"] == OURS and "low" in row}
    ahead = {key for key, row in ours.items() if row["low"] > 0}
    return {
        "ahead_on_real_tasks_all": sum((task, "all") in ahead for task in REAL),
        "ahead_on_records_all": sum((task, "all") in ahead for task in RECORDS),
        "worse": sum(row["high"] < 0 for row in ours.values()),
        "ahead_one": sum((task, "one") in ahead for task in MAIN_TASKS),
        "half_of_the_samples": sum(_needs_half(row["samples"]["share"]) for row in ours.values()),
        "corrections_over_spans": _tasks_ahead(found, SPANS_ALONE, MAIN_TASKS),
        "corrections_over_ilf": _tasks_ahead(found, "ILF", FURTHER_TASKS["ILF"]),
        "length_not_controlled": sum(_is_won_by_length(row, comparisons[key]) for key, row in ours.items()),
    }


def pairs(found: Mapping[tuple[str, str], Runs]) -> Iterator[dict[str, Any]]:
    """Yield the differences between two arms that answer a question of their own (`PAIRS`)."""
    for question, one, other in PAIRS:
        for (task, said), runs in found.items():
            if one in runs and other in runs:
                row = difference(runs[one], runs[other], next(iter(TASKS[task].metrics)))
                yield {"question": question, "arm": other, "against": one, "task": task, "said": said, **row}


def _needs_half(share: float | None) -> bool:
    return share is not None and share <= 0.5


def _is_won_by_length(row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether an arm is ahead with lengths further from the references' than the scalar arm's, and not without."""
    scalar = next(other for other in rows if other["arm"] == row["against"])
    off, scalar_off = (abs(math.log(one["length_ratio"])) for one in (row, scalar))
    controlled = row["at_equal_length"]
    is_far = off > max(scalar_off, math.log(1 + MAX_LENGTH_DIFFERENCE))
    return row["low"] > 0 and is_far and (controlled is None or controlled["low"] <= 0)


def _tasks_ahead(found: Mapping[tuple[str, str], Runs], other: str, tasks: Sequence[str]) -> int:
    """Return on how many tasks our default is ahead of another arm, whatever is said."""
    ahead = set()
    for (task, _), runs in found.items():
        if task in tasks and OURS in runs and other in runs:
            found_difference = difference(runs[other], runs[OURS], next(iter(TASKS[task].metrics)))
            if found_difference["difference"] is not None and found_difference["low"] > 0:
                ahead.add(task)
    return len(ahead)


def draw(found: Mapping[tuple[str, str], Runs]) -> Iterator[tuple[str, str]]:
    """Yield (file name, picture): the metric of each task against samples, a panel per saying."""
    for task in dict.fromkeys(task for task, _ in found):
        metric = next(iter(TASKS[task].metrics))
        panels = [
            Lines(
                f"{task}, {SAYINGS[said]}: {metric}",
                {arm: mean_curve(by_seed, metric) for arm, by_seed in runs.items() if arm in MAIN_ARMS},
            )
            for (one, said), runs in found.items()
            if one == task
        ]
        yield f"evidence-{task}.svg", line_plot(panels, "samples", MAIN_ARMS)


SAYINGS = {"all": "every fault named", "one": "one fault named"}
