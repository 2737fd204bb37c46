"""The tables of `text2grad reward`: training data, sets that were left out, and metrics of an evaluation."""

from __future__ import annotations

from typing import Any

from rich.markup import escape
from rich.table import Column, Table


def dataset_table(summary: dict[str, Any]) -> Table:
    """Return how much is trained on and held out, and why examples were skipped."""
    table = Table("", "train", "held out")
    parts = [summary["train"], summary["heldout"]]
    table.add_row("examples", *(str(part["examples"]) for part in parts))
    for label in ("good", "neutral", "poor"):
        table.add_row(f"{label} tokens", *(str(part["tokens"][label]) for part in parts))
    table.add_row("truncated prompts", *(str(part["truncated_prompts"]) for part in parts))
    for reason in sorted({reason for part in parts for reason in part["skipped"]}):
        table.add_row(f"skipped: {reason}", *(str(part["skipped"].get(reason, 0)) for part in parts))
    return table


def left_out_table(left_out: dict[str, Any]) -> Table:
    """Return how the model does on the sets that it was not trained on; a label without gold words has no row."""
    headers = ("frequency", "AP", "ECE", "distance", "trust")
    columns = [Column(no_wrap=True), *(Column(header, justify="right", no_wrap=True) for header in headers)]
    table = Table(*columns, title="Left out of the training")
    for name, metrics in left_out.items():
        for label in ("poor", "good"):
            row = metrics[label]
            if row["frequency"]:
                values = [row["frequency"], row["average_precision"], row["ece"], metrics["distance"], metrics["trust"]]
                table.add_row(
                    f"{escape(name)}: {label} words", *("" if value is None else f"{value:.3f}" for value in values)
                )
    return table


def metrics_table(metrics: dict[str, Any]) -> Table:
    """Return precision and recall of hard predictions, ranking and calibration of probabilities, by label.

    A label that does not occur in the gold feedback has no rows.
    """
    title = f"{metrics['examples']} completions; {metrics['spans_per_completion']:.2f} spans per completion"
    headers = ("frequency", "precision", "recall", "F1", "AP", "P@R .25", "ECE")
    names = ("frequency", "precision", "recall", "f1", "average_precision", "precision_at_recall_25", "ece")
    columns = [Column(no_wrap=True), *(Column(header, justify="right", no_wrap=True) for header in headers)]
    table = Table(*columns, title=f"{title}; {metrics['parse_rate']:.1%} parsed")
    for label in ("poor", "good"):
        if not metrics["tokens"][label]["frequency"]:
            continue
        for unit in ("tokens", "words", "spans"):
            row = metrics[unit][label]
            table.add_row(f"{label} {unit}", *(f"{row[name]:.3f}" if name in row else "" for name in names))
    return table
