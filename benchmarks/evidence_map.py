"""Where does feedback in words beat the same feedback as a number? A map on records told by a tiny model, on the CPU.

Gain of span credit, and of span credit with corrections, over scalar credit in the share of fields told rightly, as the
mean over the course of training, against

    the faults per answer       records of 2, 4, 8 and 16 fields, about four of nine told wrongly at the start
    what is said of them        one fault per answer, half of them, all
    the answers per step        8, 32, 128; and 256 for records of 8 fields
    wrong critiques             25 and 50% are about other words than they should be (records of 4 and 16 fields, 32
                                answers per step)
    the length of answers       17, 33 and 65 tokens for 8 fields (32 answers per step)

All arms make as many steps on as many samples. Each takes the better of two learning rates in every cell, chosen with
another seed than those that count. Every cell is kept in --out, which is committed, and one that is there is not
repeated. `--again corrections` measures one arm anew, after a change that concerns no other: with the same seeds, the
curves of the others are the same to the bit.

    python benchmarks/evidence_map.py --parallel 16
    python benchmarks/evidence_map.py --only 8-one-32-0      one cell, for its seconds
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

import harness
import torch
from plots import Cells, cell_plot
from tiny_records import RecordCritic, Task, pretrain, share_right

from text2grad import Text2GradConfig, Text2GradTrainer
from text2grad.critics.base import Critic
from text2grad.rewards.credit import Credit

FIELDS, BATCHES, WRONG = (2, 4, 8, 16), (8, 32, 128), (0.0, 0.25, 0.5)
MENTIONED = {"one": 0.0, "half": 0.5, "all": 1.0}
USUAL_BATCH, LARGE_BATCH = 32, 256  # of the cells with wrong critiques and long answers; of those in large batches
NOISY_FIELDS, LONG_FIELDS = (4, 16), 8  # of the cells with wrong critiques; of those with long answers or large batches
FILLERS = (1, 3, 7)  # words before each value
EXTREMES = ("one", "all")  # of what is said, in the cells with long answers or large batches
SEEDS, TUNING_SEED, RATES = range(3), 100, (3e-4, 1e-3)
STEPS, EVERY, HELDOUT, PRETRAINING = 60, 15, 128, 300
NO_CORRECTIONS = {"corrections": {"weight": 0.0}}
ARMS: dict[str, dict[str, Any]] = {
    "scalar": {"estimator": "rloo", "credit": Credit(mode="sequence"), **NO_CORRECTIONS},
    "spans": {"estimator": "local", **NO_CORRECTIONS},
    "corrections": {"estimator": "local"},
}
PICTURE = harness.ROOT / "docs" / "pictures" / "evidence-map.svg"


class Cell(NamedTuple):
    """A place of the map."""

    fields: int
    mentioned: str
    batch: int
    wrong: float = 0.0
    filler: int = FILLERS[0]

    @property
    def name(self) -> str:
        length = f"-{self.task.answer_length}" if self.filler != FILLERS[0] else ""
        return f"{self.fields}-{self.mentioned}-{self.batch}-{self.wrong:g}{length}"

    @property
    def task(self) -> Task:
        return Task(self.fields, self.filler)


def main() -> None:
    args = options()
    wanted = [cell for cell in cells() if not args.only or cell.name in args.only]
    if args.quick:
        wanted = wanted[:2]
    starts = harness.ROOT / "runs" / ("evidence-map-starts-quick" if args.quick else "evidence-map-starts")
    for folder in (args.out, starts):
        folder.mkdir(parents=True, exist_ok=True)
    found = {cell: read(args.out, cell) for cell in wanted}
    commit = harness.commit().removesuffix("-dirty")  # the cells that are written here are changes too
    waiting = [cell for cell in wanted if missing_arms(found[cell], args.again, commit)]
    print(f"{len(wanted) - len(waiting)} cells are there, {len(waiting)} to go", flush=True)
    with ProcessPoolExecutor(args.parallel, mp_context=get_context("spawn")) as pool:
        models = {(cell.task, seed) for cell in waiting for seed in (TUNING_SEED, *seeds_of(args.quick))}
        for prepared in [pool.submit(prepare, *model, starts, args.quick) for model in models]:
            prepared.result()
        futures = {
            pool.submit(measure, cell, missing_arms(found[cell], args.again, commit), starts, args.quick): cell
            for cell in waiting
        }
        for future in as_completed(futures):
            cell = futures[future]
            found[cell] = result = merge(found[cell], future.result(), commit)
            if not args.quick:
                (args.out / f"{cell.name}.json").write_text(json.dumps(result), encoding="utf-8")
            print(f"{cell.name}: {result['seconds']:.0f} s", flush=True)
    results = {cell: result for cell, result in found.items() if result is not None}
    figures = summarise(results)
    show(results)
    if args.only or args.quick:
        print(json.dumps(figures))
        return
    PICTURE.write_text(draw(results), encoding="utf-8")
    harness.report("evidence_map", figures, {"cells": harness.Bar(at_least=36)}, args)


def seeds_of(quick: bool) -> range:
    return SEEDS[:1] if quick else SEEDS


def cells() -> list[Cell]:
    """Return the cells in order of priority: those with right critiques first."""
    right = [Cell(*place) for place in product(FIELDS, MENTIONED, BATCHES)]
    wrong = [Cell(f, m, USUAL_BATCH, w) for w, f, m in product(WRONG[1:], NOISY_FIELDS, MENTIONED)]
    long = [Cell(LONG_FIELDS, m, USUAL_BATCH, filler=filler) for filler, m in product(FILLERS[1:], EXTREMES)]
    large = [Cell(LONG_FIELDS, m, LARGE_BATCH) for m in EXTREMES]
    return right + wrong + long + large


def read(folder: Path, cell: Cell) -> dict[str, Any] | None:
    path = folder / f"{cell.name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def missing_arms(result: Mapping[str, Any] | None, again: str | None, commit: str) -> list[str]:
    """Return the arms of a cell that have not been measured; `again`: nor at this commit."""
    if result is None:
        return list(ARMS)
    return [again] if again and result["arms"][again].get("commit") != commit else []


def merge(before: Mapping[str, Any] | None, measured: Mapping[str, Any], commit: str) -> dict[str, Any]:
    """Return a cell with the arms that were measured now, and their commit."""
    arms = {arm: result | {"commit": commit} for arm, result in measured["arms"].items()}
    if before is None:
        return {"arms": arms, "seconds": measured["seconds"]}
    return {"arms": before["arms"] | arms, "seconds": before["seconds"]}


def measure(cell: Cell, wanted: Sequence[str], starts: Path, quick: bool) -> dict[str, Any]:
    """Return the curves of arms and seeds in a cell, the learning rate of each arm, and the processor's seconds."""
    torch.set_num_threads(1)
    began, seeds = time.process_time(), seeds_of(quick)
    arms = {}
    for arm in wanted:
        tuning = {rate: fmean(learn(cell, arm, TUNING_SEED, rate, starts, quick)[1:]) for rate in RATES}
        rate = max(tuning, key=lambda rate: tuning[rate])
        arms[arm] = {"rate": rate, "curves": [learn(cell, arm, seed, rate, starts, quick) for seed in seeds]}
    return {"arms": arms, "seconds": time.process_time() - began}


def learn(cell: Cell, arm: str, seed: int, rate: float, starts: Path, quick: bool) -> list[float]:
    """Train once with the critic and an arm of the map; see `train_once`."""
    critic = RecordCritic(cell.task, MENTIONED[cell.mentioned], cell.wrong)
    return train_once(cell, critic, ARMS[arm], seed, rate, starts, quick)


def train_once(
    cell: Cell, critic: Critic, arm: Mapping[str, Any], seed: int, rate: float, starts: Path, quick: bool
) -> list[float]:
    """Return the share of fields told rightly before training and every EVERY steps. arm: settings of the trainer."""
    task = cell.task
    steps, heldout = (2, 8) if quick else (STEPS, HELDOUT)
    every = 1 if quick else EVERY
    settings: dict[str, Any] = {
        "max_steps": steps,
        "per_device_train_batch_size": cell.batch,
        "num_generations": 4,
        "max_completion_length": task.answer_length + 2,
        "learning_rate": rate,
        "beta": 0.01,
        "temperature": 1.0,
        "bf16": False,
        "num_logged_completions": 0,
        **arm,
    }
    model, tokenizer = start(task, seed, starts)
    trainer = Text2GradTrainer(
        model,
        critic,
        Text2GradConfig(output_dir=Path("never written"), seed=seed, **settings),
        task.examples(cell.batch * steps // 4, seed),
        processing_class=tokenizer,
        plain_prompts=True,
    )
    unseen = task.examples(heldout, 1000 + seed)

    def right() -> float:
        return fmean(share_right(task, example) for example in trainer.generate(unseen, 1.0, batch_size=heldout))

    curve = [right()]
    for step in range(1, steps + 1):
        trainer.step(step)
        if step % every == 0:
            curve.append(right())
    return curve


def prepare(task: Task, seed: int, starts: Path, quick: bool) -> None:
    """Write the model that all arms of a seed start from."""
    torch.set_num_threads(1)
    path = start_path(task, seed, starts)
    if not path.is_file():
        partial = path.with_suffix(".partial")
        torch.save(pretrain(task, task.tokenizer(), seed, 20 if quick else PRETRAINING).state_dict(), partial)
        partial.replace(path)


def start_path(task: Task, seed: int, starts: Path) -> Path:
    return starts / f"{task.fields}-{task.filler}-{seed}.pt"


def start(task: Task, seed: int, starts: Path) -> tuple[Any, Any]:
    """Return a model that `prepare` wrote, and its tokenizer."""
    model = pretrain(task, task.tokenizer(), seed, steps=0)
    model.load_state_dict(torch.load(start_path(task, seed, starts)))
    return model, task.tokenizer()


def gain(result: Mapping[str, Any], arm: str) -> tuple[float, float]:
    """Return the mean gain of an arm over scalar credit, over seeds and the course of training, and its deviation."""
    pairs = zip(result["arms"][arm]["curves"], result["arms"]["scalar"]["curves"], strict=True)
    gains = [fmean(ours[1:]) - fmean(theirs[1:]) for ours, theirs in pairs]
    return fmean(gains), stdev(gains) if len(gains) > 1 else 0.0


def summarise(results: Mapping[Cell, Any]) -> dict[str, Any]:
    """Return the gains of every cell, and in how many of them an arm is ahead of scalar credit."""
    rows = [
        cell._asdict()
        | {"tokens": cell.task.answer_length}
        | {f"{arm}_gain": gain(result, arm)[0] for arm in ARMS if arm != "scalar"}
        | {f"{arm}_deviation": gain(result, arm)[1] for arm in ARMS if arm != "scalar"}
        | {f"{arm}_last": fmean(curve[-1] for curve in result["arms"][arm]["curves"]) for arm in ARMS}
        for cell, result in results.items()
    ]
    return {
        "cells": len(rows),
        "seeds": min((len(result["arms"]["scalar"]["curves"]) for result in results.values()), default=0),
        "spans_ahead": sum(row["spans_gain"] > 0 for row in rows),
        "corrections_ahead": sum(row["corrections_gain"] > 0 for row in rows),
        "seconds_per_cell": fmean([result["seconds"] for result in results.values()] or [0.0]),
        "map": rows,
    }


def draw(results: Mapping[Cell, Any]) -> str:
    """The gains of an arm in each row: at every batch size, then with wrong critiques at USUAL_BATCH."""
    rows = [str(fields) for fields in FIELDS]
    places = [(batch, 0.0) for batch in BATCHES] + [(USUAL_BATCH, wrong) for wrong in WRONG[1:]]
    panels = [
        Cells(
            f"{arm}: {wrong:.0%} wrong" if wrong else f"{arm}: {batch} answers",
            rows,
            list(MENTIONED),
            _values(results, arm, batch, wrong),
        )
        for arm in ("spans", "corrections")
        for batch, wrong in places
    ]
    note = (
        f"Answers: per step. Wrong: critiques, with {USUAL_BATCH} answers. "
        "Gain over scalar credit in the share of fields told rightly."
    )
    return cell_plot(panels, "fields per record", "faults that are named", note, per_row=len(places))


def _values(
    results: Mapping[Cell, Any], arm: str, batch: int, wrong: float = 0.0
) -> dict[tuple[str, str], float | None]:
    places = {(str(f), m): Cell(f, m, batch, wrong) for f, m in product(FIELDS, MENTIONED)}
    return {place: gain(results[cell], arm)[0] if cell in results else None for place, cell in places.items()}


def show(results: Mapping[Cell, Any]) -> None:
    rows = []
    for cell, result in results.items():
        last = [f"{fmean(curve[-1] for curve in result['arms'][arm]['curves']):.2f}" for arm in ARMS]
        gains = [f"{gain(result, arm)[0]:+.3f} ± {gain(result, arm)[1]:.3f}" for arm in ("spans", "corrections")]
        rows.append([cell.name, *last, *gains, f"{result['seconds']:.0f}"])
    columns = ["fields-named-batch-wrong-tokens", *ARMS, "gain of spans", "of corrections", "seconds"]
    harness.show("Share of fields told rightly at the end, and gain over training", columns, rows)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="two cells of two steps; save nothing")
    parser.add_argument("--only", nargs="+", help="names of cells, and report nothing")
    parser.add_argument("--again", choices=list(ARMS), help="measure this arm anew")
    parser.add_argument("--parallel", type=int, default=len(os.sched_getaffinity(0)), help="cells at a time")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("evidence_cells"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
