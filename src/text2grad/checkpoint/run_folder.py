"""The folder of a run: config, metrics of each step, samples with token rewards, checkpoints, report."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from text2grad.errors import UserError
from text2grad.files import append_json_lines, disk_errors, read_json_lines, replace_text


class RunFolder:
    """The files of one run."""

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
        """Create the folder; an existing run is not overwritten."""
        if self.metrics.exists():
            raise UserError(f"{self.root} already holds a run; continue it with --resume, or choose another output_dir")
        with disk_errors(self.root):
            self.root.mkdir(parents=True, exist_ok=True)

    def record(self, metrics: dict[str, Any], samples: list[dict[str, Any]]) -> None:
        """Append one step's metrics and samples."""
        append_json_lines(self.samples, [_without_nan(sample) for sample in samples])
        append_json_lines(self.metrics, [_without_nan(metrics)])

    def steps(self) -> Iterator[dict[str, Any]]:
        """Yield the metrics of each recorded step."""
        if self.metrics.exists():
            for _, metrics in read_json_lines(self.metrics):
                yield metrics

    def rewind(self, step: int) -> None:
        """Drop records after `step`, the checkpoint's, since these steps will be repeated."""
        for path in (self.metrics, self.samples):
            if path.exists():
                kept = (record for _, record in read_json_lines(path) if record["step"] <= step)
                replace_text(path, "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in kept))


def _without_nan(value: Any) -> Any:
    """Replace NaN and infinities, which JSON does not have, by null."""
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
