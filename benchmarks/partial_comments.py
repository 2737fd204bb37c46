"""Is a comment on one fault a score? What span credit learns if it is taken for one, and if it is not.

Records of eight fields told by a tiny model (`tiny_records.py`); a critic that names one fault of every answer, drawn
at random, as people do: a wrong word or a field that is missing. Either all faults are equally bad, or those of every
other field weigh a tenth. The comment as a number, 0 less the weight of the fault that is named, is what scalar credit
gets. Span credit gets the comment, and learns from it with the number as the score of the answer (`as a score`), or
without one.

All arms make 60 steps of 32 answers to the same prompts, with the better of two learning rates, chosen with another
seed. Measured is the share of fields told rightly on unseen records.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean, stdev
from tempfile import TemporaryDirectory
from typing import Any

import harness
from evidence_map import ARMS, EVERY, RATES, TUNING_SEED, Cell, prepare, train_once
from one_fault import OneFault, Score
from tiny_records import RecordCritic, words_in_step

from text2grad.schema import Example, Feedback, Omission

CELL = Cell(fields=8, mentioned="one", batch=32)
SEEDS = range(5)
T_QUANTILE = 2.776  # Student's t with four degrees of freedom, 97.5%
MINOR = 0.1  # weight of the faults of every other field, where they are not equally bad
WEIGHTS = {"equal": 1.0, "different": MINOR}
SETTINGS: dict[str, tuple[str, Score | None]] = {  # arm of the map, and the number that comes with a comment
    "the number": ("scalar", "comment"),
    "spans, as a score": ("spans", "comment"),
    "spans": ("spans", None),
    "corrections, as a score": ("corrections", "comment"),
    "corrections": ("corrections", None),
}
BARS = {f"{arm}_gain_low_{faults}": harness.Bar(at_least=0.0) for arm in ("spans", "corrections") for faults in WEIGHTS}


class WeighedRecordCritic:
    """Names every fault and every field that is not told; those of every other field weigh less."""

    def __init__(self, minor: float) -> None:
        self._critic, self._minor = RecordCritic(CELL.task), minor

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        found = self._critic.critique(examples)
        return [self._weigh(feedback, example) for example, feedback in zip(examples, found, strict=True)]

    def _weigh(self, feedback: Feedback, example: Example) -> Feedback:
        per_field = CELL.task.filler + 1
        told = words_in_step(CELL.task, example.completion.split()) // per_field
        missing = [Omission(text=f"field {i}", severity=self._weight(i)) for i in range(told, CELL.fields)]
        spans = [
            span.model_copy(update={"severity": self._weight(example.completion[: span.start].count(" ") // per_field)})
            for span in feedback.spans
        ]
        return feedback.model_copy(update={"spans": spans, "omissions": missing})

    def _weight(self, field: int) -> float:
        return self._minor if field % 2 else 1.0


def main() -> None:
    args = harness.options(__doc__ or "")
    runs = list(product(WEIGHTS, SETTINGS))
    with TemporaryDirectory() as folder, _pool() as pool:
        starts = Path(folder)
        seeds = SEEDS[:2] if args.quick else SEEDS
        list(pool.map(partial(prepare, CELL.task, starts=starts, quick=args.quick), [TUNING_SEED, *seeds]))
        found = dict(zip(runs, pool.map(partial(measure, starts, seeds, args.quick), runs), strict=True))
    figures: dict[str, Any] = {"arms": [{"faults": f, "arm": a, **found[f, a]} for f, a in runs]}
    for faults, arm in product(WEIGHTS, ("spans", "corrections")):
        figures |= gain(f"{arm}_gain", faults, found[faults, arm], found[faults, f"{arm}, as a score"])
    show(figures)
    harness.report("partial_comments", figures, {} if args.quick else BARS, args)


def _pool() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(len(os.sched_getaffinity(0)), get_context("spawn"))


def measure(starts: Path, seeds: Sequence[int], quick: bool, run: tuple[str, str]) -> dict[str, Any]:
    """Return the learning rate of an arm, and the shares of right fields of each seed every EVERY steps."""
    faults, arm = run
    name, score = SETTINGS[arm]
    critic = OneFault(WeighedRecordCritic(WEIGHTS[faults]), score)

    def learn(seed: int, rate: float) -> list[float]:
        return train_once(CELL, critic, ARMS[name], seed, rate, starts, quick)

    tuning = {rate: fmean(learn(TUNING_SEED, rate)[1:]) for rate in RATES}
    rate = max(tuning, key=tuning.__getitem__)
    return {"rate": rate, "curves": [learn(seed, rate) for seed in seeds]}


def gain(name: str, faults: str, ours: dict[str, Any], other: dict[str, Any]) -> dict[str, float]:
    """Return the mean difference over the course of training, and the lower end of its 95% interval over seeds."""
    gains = [fmean(a[1:]) - fmean(b[1:]) for a, b in zip(ours["curves"], other["curves"], strict=True)]
    error = stdev(gains) / len(gains) ** 0.5
    return {f"{name}_{faults}": fmean(gains), f"{name}_low_{faults}": fmean(gains) - T_QUANTILE * error}


def show(figures: dict[str, Any]) -> None:
    rows = [
        [f"{row['faults']}, {row['arm']}", f"{row['rate']:g}"]
        + [f"{fmean(values):.3f}" for values in zip(*row["curves"], strict=True)]
        for row in figures["arms"]
    ]
    points = range(len(figures["arms"][0]["curves"][0]))
    columns = ["faults, arm", "rate", *(f"step {EVERY * point}" for point in points)]
    harness.show("Share of fields told rightly, mean over seeds", columns, rows)


if __name__ == "__main__":
    main()
