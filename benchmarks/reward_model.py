"""How well the span reward model finds the words that people blame.

DeFacto's validation rows, all 486, the clean ones included; gold are the words that the person's correction replaced or
deleted; the figure is the average precision of blamed words, beside guesses that need no model. Trained from the
default model on DeFacto's training rows (with the corrected summaries as answers without blame) and four fifths of
HaluQuestQA, FGRLHF and DebugBench; the other fifths are reported. Three seeds, and the 95% interval of their mean (t
with two degrees of freedom).

Then, on DeFacto alone, same data and steps: the completion read once, twice or around the prompt; critique first or
spans only; the head alone or with the generated critique; the head's words against the generated quotations. And how
the metric grows with steps and with rows.

Every run is a separate process and writes its result to TEXT2GRAD_RUNS (default runs/benchmark), so an interrupted
benchmark continues. TEXT2GRAD_AT_ONCE runs are started at the same time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from harness import ROOT, Bar, data_folder, options, report, show
from reward_data import baselines, defacto_val
from reward_runs import MIX, ROWS, RUNS, VARIANTS

T_95_TWO_DEGREES = 4.303
AT_ONCE = int(os.environ.get("TEXT2GRAD_AT_ONCE", "1"))


def folder() -> Path:
    """Return the folder of the results and models of all runs."""
    place = Path(os.environ.get("TEXT2GRAD_RUNS", ROOT / "runs" / "benchmark"))
    place.mkdir(parents=True, exist_ok=True)
    return place


def main() -> None:
    args = options(__doc__ or "")
    names = [name for name in RUNS if not args.quick or name in ("mix-0", "twice, spans only")]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        runs = dict(zip(names, pool.map(lambda name: load_or_run(name, args.quick), names), strict=True))
    guesses = baselines(defacto_val(data_folder()))
    best = max(guesses.values())
    show("Guesses", ["", "average precision"], [[name, f"{value:.3f}"] for name, value in guesses.items()])
    seeds = [name for name in MIX if name in runs]
    precision = [poor_words(runs[name])["average_precision"] for name in seeds]
    at_recall = [poor_words(runs[name])["precision_at_recall_25"] for name in seeds]
    half_width = T_95_TWO_DEGREES * stdev(precision) / len(precision) ** 0.5 if len(precision) > 2 else 0.0
    figures: dict[str, Any] = {
        "guesses": guesses,
        "average_precision": precision,
        "average_precision_mean": mean(precision),
        "average_precision_half_width": half_width,
        "ratio": mean(precision) / best,
        "ratio_low": (mean(precision) - half_width) / best,
        "precision_at_recall_25": at_recall,
        "precision_at_recall_25_least": min(at_recall),
        "heldout": {name: compact(runs["mix-0"]["head"][name]) for name in runs["mix-0"]["head"]},
        "generative": compact(runs["mix-0"]["generative"]),
        "steps": {name: runs[name]["curve"] for name in seeds},
        "rows": {name: poor_words(runs[name])["average_precision"] for name in ROWS if name in runs},
        "variants": {name: variant(runs[name]) for name in VARIANTS if name in runs},
        "seconds": {name: result["seconds"] for name, result in runs.items()},
        "left_out": {name: runs["mix-0"]["training"][name]["skipped"] for name in ("train", "heldout")},
    }
    _show(figures)
    bars = {"ratio_low": Bar(at_least=1.25), "precision_at_recall_25_least": Bar(at_least=0.5)}
    report("reward_model", figures, bars, args)


def load_or_run(name: str, quick: bool) -> dict[str, Any]:
    """Return the result of one run, from its file if an earlier call has written it."""
    kept = folder() / f"{name}.json"
    if not kept.exists():
        command = [sys.executable, str(Path(__file__).with_name("reward_runs.py")), name, str(folder())]
        subprocess.run([*command, *(["--quick"] if quick else [])], check=True)
        print(f"{name}: done", flush=True)
    result: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
    return result


def poor_words(run: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = run["head"]["defacto"]["words"]["poor"]
    return found


def compact(metrics: dict[str, Any]) -> dict[str, Any]:
    """Return the metrics of one evaluation that the tables show."""
    row: dict[str, Any] = {"examples": metrics["examples"], "critique_rouge_l": metrics["critique_rouge_l"]}
    for label in ("poor", "good"):
        words, tokens, spans = (metrics[unit][label] for unit in ("words", "tokens", "spans"))
        row[label] = {
            "share_of_words": words["frequency"],
            "average_precision": words["average_precision"],
            "precision_at_recall_25": words["precision_at_recall_25"],
            "ece": words["ece"],
            **{f"token_{name}": tokens[name] for name in ("precision", "recall", "f1")},
            **{f"span_{name}": spans[name] for name in ("precision", "recall", "f1")},
        }
    row["sign_errors"] = metrics["tokens"]["sign_errors"]
    row["coverage"], row["gold_coverage"] = metrics["coverage"], metrics["gold_coverage"]
    row["spans_per_answer"] = metrics["spans_per_completion"]
    row["left_out"] = metrics["skipped"]
    return row


def variant(run: dict[str, Any]) -> dict[str, Any]:
    """Return the metrics of the head and of the generated quotations of one run."""
    head = compact(run["head"]["defacto"])
    row = {"average_precision": head["poor"]["average_precision"], "ece": head["poor"]["ece"]}
    row["head"] = {name: head["poor"][f"token_{name}"] for name in ("precision", "recall", "f1")}
    if "generative" in run:
        written = compact(run["generative"])
        row["written"] = {name: written["poor"][f"token_{name}"] for name in ("precision", "recall", "f1")}
        row["critique_rouge_l"] = written["critique_rouge_l"]
    return row


def _show(figures: dict[str, Any]) -> None:
    rows = [
        [name, str(row["examples"])]
        + [f"{row['poor'][k]:.3f}" for k in ("share_of_words", "average_precision", "precision_at_recall_25", "ece")]
        + [f"{row['good'][k]:.3f}" for k in ("share_of_words", "average_precision")]
        for name, row in figures["heldout"].items()
    ]
    columns = ["held out", "answers", "poor share", "poor AP", "P at R .25", "ECE", "good share", "good AP"]
    show("Words, one model for all sets, seed 0", columns, rows)
    rows = []
    for name, row in figures["variants"].items():
        written = row.get("written")
        rows.append(
            [name, f"{row['average_precision']:.3f}"]
            + [f"{row['head'][k]:.3f}" for k in ("precision", "recall", "f1")]
            + [f"{written[k]:.3f}" if written else "" for k in ("precision", "recall", "f1")]
        )
    columns = ["DeFacto alone", "AP", "head P", "head R", "head F1", "written P", "written R", "written F1"]
    show("Same data, same steps, one seed", columns, rows)
    show(
        "Average precision as training goes on",
        ["seed", "step: average precision"],
        [
            [name, "  ".join(f"{step}: {value:.3f}" for step, value in curve)]
            for name, curve in figures["steps"].items()
        ],
    )


if __name__ == "__main__":
    main()
