"""Chooses the settings of every arm of `evidence.py` from its runs on the selection half."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import harness
from evidence_plan import SETTINGS_FILE, Settings, grid, read_run, settings_key
from evidence_tasks import TASKS


def select(folder: Path, quick: bool, file: Path = SETTINGS_FILE) -> None:
    """Print the best setting of each arm and task, and write them to a file; of what was chosen before, the rest stays.

    quick: from dry runs too.
    """
    runs = [read_run(path) for path in sorted(folder.glob("select-*.json.gz"))]
    chosen = choose([run for run in runs if quick or not run["quick"]])
    rows = [
        [key, json.dumps(entry["settings"]), *(f"{tried['value']:.3f}" for tried in entry["tried"])]
        + [""] * (3 - len(entry["tried"]))
        for key, entry in chosen.items()
    ]
    harness.show("Chosen", ["task, arm", "settings", "1st", "2nd", "3rd"], rows)
    for key, entry in chosen.items():
        if entry["missing"]:
            print(f"{key}: {entry['missing']} settings have not been tried with the seeds that others have")
    before = json.loads(file.read_text(encoding="utf-8"))["chosen"] if file.is_file() else {}
    written = file.with_suffix(".new")
    written.write_text(
        json.dumps({"chosen": dict(sorted((before | chosen).items()))}, indent=1) + "\n", encoding="utf-8"
    )
    written.replace(file)  # a campaign may read it at any time


def choose(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return by task and arm the settings with the best metric, its mean over seeds where everything is said.

    Settings are compared on the seeds on which all of them that were tried were run. tried: all settings
    with their values, best first. missing: how many of the grid were not tried.
    """
    found: dict[str, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    tasks: dict[str, tuple[str, str]] = {}
    commits: dict[str, str] = {}
    for run in runs:
        metric = next(iter(TASKS[run["task"]].metrics))
        key = settings_key(run["task"], run["arm"])
        tasks[key] = run["task"], run["arm"]
        commits[key] = run["commit"]
        value = fmean(row[metric] for row in run["after"])
        found[key][_name(run["chosen"])][run["seed"]] = value
    chosen = {}
    for key, by_settings in sorted(found.items()):
        common = set.intersection(*(set(values) for values in by_settings.values()))
        if not common:
            print(f"{key}: its settings have no run in common, so none is chosen")
            continue
        tried = [
            {"settings": json.loads(name), "value": fmean(values[seed] for seed in common), "runs": len(common)}
            for name, values in by_settings.items()
        ]
        tried.sort(key=lambda entry: -float(entry["value"]))
        expected = {_name(settings) for settings in grid(*tasks[key])}
        chosen[key] = {
            "settings": tried[0]["settings"],
            "tried": tried,
            "missing": len(expected - set(by_settings)),
            "commit": commits[key],
        }
    return chosen


def _name(settings: Settings) -> str:
    return json.dumps(settings, sort_keys=True)
