"""Which runs `evidence.py` makes, in order of priority, and the settings that were chosen for each arm."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Literal

Said = Literal["all", "one"]  # what the critic names: every fault, or one per answer
Half = Literal["select", "report"]
Settings = dict[str, float]
SETTINGS_FILE = Path(__file__).with_name("evidence_settings.json")  # written by `evidence.py select`
RUNS_FOLDER = Path(__file__).with_name("evidence_runs")
SELECT_SEEDS, REPORT_SEEDS, FURTHER_SEEDS = range(1), range(10, 15), range(10, 13)
MAIN_TASKS = ("questions", "records16", "summaries", "code")  # with 8 fields, all arms end near 1: nothing to tell
SLOW_TASKS = ("code",)  # their programs keep all cores busy: last
LEFT_OUT = {"code": ("spans local", "corrections local")}  # main arms that a slow task does without
TWO_TASKS = ("questions", "summaries")
FURTHER_TASKS = {  # of the further arms, all others on one
    "spans local, light outcome": TWO_TASKS,
    "spans local, as a score": TWO_TASKS,
    "ILF": ("questions", "records16"),
}
FURTHER_TASK = "questions"
# Of the arms with corrections, the best on the selection half of questions and summaries.
OURS, SPANS_ALONE = "corrections rloo_tokens", "spans rloo_tokens"
MAIN_ARMS = (
    "scalar rloo",
    "scalar rloo, holistic",
    "scalar ppo",
    "paper",
    "spans local",
    "spans rloo_tokens",
    "spans moved",
    "corrections local",
    "corrections rloo_tokens",
)
FURTHER_ARMS = (
    "spans first",
    "spans local, light outcome",
    "spans local, as a score",
    "corrections rloo",  # what corrections do beside one advantage per sequence
    "ILF",
    "DPO",
    "best of n",
    "reflection",
    "reward model, spans",
    "reward model, scalar",
    "TRL GRPO",
    "TRL SDPO",
)
ALONE = ("TRL GRPO", "TRL SDPO")  # arms whose runs cannot share a model
ALL_SEEDS = ("TRL GRPO",)  # further arms with the seeds of the main ones: a scalar arm that ours is compared with
UNTRAINED = ("best of n", "reflection")  # the weights stay as they are: nothing to tune
TWO_SETTINGS = ("code",)  # tasks of which every arm has two settings to choose from, on the others three
RATES = (3e-4, 1e-3, 1e-4)  # learning rates that are tried for every arm without corrections
LOWER_RATES = {"TRL SDPO": (1e-4, 3e-5, 1e-5)}  # at the others' lowest rate its answers degenerate
# Of arms with corrections: how hard improbable ones pull matters more than the lowest rate, which was never the best.
CORRECTION_GRID: Sequence[Settings] = (
    {"learning_rate": 3e-4},
    {"learning_rate": 1e-3},
    {"learning_rate": 3e-4, "corrections.robustness": 0.25, "corrections.weight": 4.0},
)
HOLISTIC = "scalar rloo, holistic"  # the same as `scalar rloo` where everything is said
REWARD_MODEL = ("reward model, spans", "reward model, scalar")  # taught by a critic that says everything
# Arms that are run with that critic only.
EVERYTHING_SAID = (*REWARD_MODEL, "spans local, light outcome", "DPO", "best of n", "reflection", *ALONE)
ONE_FAULT_SAID = ("spans local, as a score",)  # arms that are run with that critic only
SAME_SETTINGS = {  # arms that take the settings chosen for another, of which they are a variant
    HOLISTIC: "scalar rloo",
    "reward model, spans": "spans local",
    "reward model, scalar": "scalar rloo",
    "spans local, light outcome": "spans local",
    "spans local, as a score": "spans local",
    "TRL GRPO": "scalar rloo",
}


@dataclass(frozen=True)
class Run:
    """One training run. settings: learning_rate, and what else the grid of the arm changes."""

    task: str
    arm: str
    said: Said
    seed: int
    half: Half = "report"
    settings: Settings = field(default_factory=dict, hash=False)

    @property
    def name(self) -> str:
        """Its name, also of its file. On the selection half, runs of one arm differ in their settings."""
        parts = [self.half, self.task, self.said, slug(self.arm), str(self.seed)]
        chosen = [f"{key.rpartition('.')[2]}={value:g}" for key, value in sorted(self.settings.items())]
        return "-".join(parts + (chosen if self.half == "select" else []))

    @property
    def file_name(self) -> str:
        return f"{self.name}.json.gz"

    def trainer_settings(self) -> dict[str, Any]:
        """The settings with dots resolved: {"corrections.weight": 1} is {"corrections": {"weight": 1}}."""
        found: dict[str, Any] = {}
        for key, value in self.settings.items():
            group, _, name = key.rpartition(".")
            (found.setdefault(group, {}) if group else found)[name] = value
        return found


def write_run(path: Path, result: Mapping[str, Any]) -> None:
    """Write the result of a run, as the same bytes for the same result."""
    path.write_bytes(gzip.compress(json.dumps(result).encode(), mtime=0))


def read_run(path: Path) -> dict[str, Any]:
    """Return what `write_run` wrote."""
    found: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return found


def is_made(folder: Path, run: Run) -> bool:
    """Whether the file of a run is there."""
    return (folder / run.file_name).is_file()


def has_corrections(arm: str) -> bool:
    return arm.startswith("corrections")


def slug(arm: str) -> str:
    return arm.replace(" ", "_").replace(",", "")


def grid(task: str, arm: str) -> list[Settings]:
    """Return the settings that are tried for an arm that is trained: as many for each arm of a task."""
    rates = LOWER_RATES.get(arm, RATES)
    given = CORRECTION_GRID if has_corrections(arm) else [{"learning_rate": rate} for rate in rates]
    return [dict(settings) for settings in given[: 2 if task in TWO_SETTINGS else 3]]


def report_runs(
    tasks: Sequence[str], arms: Sequence[str], sayings: Sequence[Said], seeds: Sequence[int]
) -> Iterator[Run]:
    """Yield the runs that are reported, the seeds outermost: a campaign cut short has whole rows."""
    for seed, task, said, arm in product(seeds, tasks, sayings, arms):
        if is_of_its_own(arm, said) and arm not in LEFT_OUT.get(task, ()):
            yield Run(task, arm, said, seed)


def further_tasks(arm: str, tasks: Sequence[str]) -> list[str]:
    """Return on which of the tasks a further arm is run."""
    return [task for task in tasks if task in FURTHER_TASKS.get(arm, (FURTHER_TASK,))]


def plan_report(
    tasks: Sequence[str] = MAIN_TASKS,
    main_arms: Sequence[str] = MAIN_ARMS,
    further_arms: Sequence[str] = FURTHER_ARMS,
    sayings: Sequence[Said] = ("all", "one"),
    seeds: Sequence[int] | None = None,
) -> list[Run]:
    """Return the runs of the main arms, then those of the further ones: all of a report, or these. No settings yet."""
    further = [
        run
        for seed in seeds or REPORT_SEEDS
        for arm in further_arms
        if seeds or arm in ALL_SEEDS or seed in FURTHER_SEEDS
        for run in report_runs(further_tasks(arm, tasks), [arm], sayings, [seed])
    ]
    return [*report_runs(tasks, main_arms, sayings, seeds or REPORT_SEEDS), *further]


def plan_selection(wanted: Sequence[Run], chosen: Mapping[str, Settings]) -> list[Run]:
    """Return the runs from which the settings are chosen that `wanted` needs and that have not been."""
    keys = dict.fromkeys((run.task, arm_of_settings(run.arm)) for run in wanted if run.arm not in UNTRAINED)
    return [
        Run(task, arm, "all", seed, "select", settings)
        for task, arm in keys
        if settings_key(task, arm) not in chosen
        for seed in SELECT_SEEDS
        for settings in grid(task, arm)
    ]


def is_of_its_own(arm: str, said: Said) -> bool:
    """Whether an arm differs from all others: where everything is said, the holistic number is the number."""
    return arm not in (EVERYTHING_SAID if said == "one" else (HOLISTIC, *ONE_FAULT_SAID))


def chosen_settings(task: str, arm: str, chosen: dict[str, Settings]) -> Settings:
    """Return what was chosen for an arm on a task, or exit with what to do."""
    key = settings_key(task, arm)
    if arm in UNTRAINED:
        return {}
    if key not in chosen:
        sys.exit(f"{SETTINGS_FILE.name}: nothing chosen for {key}; `evidence.py campaign` chooses it, or give --set")
    return chosen[key]


def settings_key(task: str, arm: str) -> str:
    return f"{task}, {arm_of_settings(arm)}"


def arm_of_settings(arm: str) -> str:
    """Return the arm whose settings an arm takes, mostly its own."""
    return SAME_SETTINGS.get(arm, arm)


def read_settings(file: Path = SETTINGS_FILE) -> dict[str, Settings]:
    """Return the chosen settings by `settings_key`."""
    if not file.is_file():
        return {}
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return {key: entry["settings"] for key, entry in found["chosen"].items()}
