"""A run is a folder: what was asked, what happened at each step, samples token by token, weights, the report."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from text2grad.errors import UserError
from text2grad.files import append_json_lines, disk_errors, read_json_lines, replace_text


class RunFolder:
    """The files of one run and how they grow."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.config = root / "config.yaml"
        self.metrics = root / "metrics.jsonl"
        self.samples = root / "samples.jsonl"
        self.before = root / "before.jsonl"
        self.evaluation = root / "evaluation.json"
        self.checkpoint = root / "checkpoints" / "last"
        self.best = root / "checkpoints" / "best"
        self.final = root / "checkpoints" / "final"
        self.trackers = root / "trackers"
        self.report = root / "report.html"

    def start(self) -> None:
        """Make the folder; a run that is there already is not overwritten."""
        if self.metrics.exists():
            raise UserError(f"{self.root} already holds a run; continue it with --resume, or choose another output_dir")
        with disk_errors(self.root):
            self.root.mkdir(parents=True, exist_ok=True)

    def record(self, metrics: dict[str, Any], samples: list[dict[str, Any]]) -> None:
        """Append one step's metrics and samples."""
        append_json_lines(self.samples, [_without_nan(sample) for sample in samples])
        append_json_lines(self.metrics, [_without_nan(metrics)])

    def steps(self) -> Iterator[dict[str, Any]]:
        """The metrics of each step so far; none where the first was never recorded."""
        if self.metrics.exists():
            for _, metrics in read_json_lines(self.metrics):
                yield metrics

    def rewind(self, step: int) -> None:
        """Drop what was recorded after `step`: the checkpoint does not know of it, and it will happen again."""
        for path in (self.metrics, self.samples):
            if path.exists():
                kept = (record for _, record in read_json_lines(path) if record["step"] <= step)
                replace_text(path, "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in kept))


def _without_nan(value: Any) -> Any:
    """JSON has no NaN: what could not be measured is null."""
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
