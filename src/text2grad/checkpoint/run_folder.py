"""The folder of a run: config, metrics of each step, samples with token rewards, checkpoints, report."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from text2grad.errors import UserError
from text2grad.files import append_json_lines, checksum, disk_errors, exclusive_lock, read_json_lines, replace_text


class RunFolder:
    """The files of one run."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.config = root / "config.yaml"
        self.metrics = root / "metrics.jsonl"
        self.samples = root / "samples.jsonl"
        self.before = root / "before.jsonl"
        self.before_checksum = root / "before.sha256"
        self.evaluation = root / "evaluation.json"
        self.checkpoint = root / "checkpoints" / "last"
        self.previous = root / "checkpoints" / "previous"
        self.best = root / "checkpoints" / "best"
        self.final = root / "checkpoints" / "final"
        self.trackers = root / "trackers"
        self.report = root / "report.html"
        self.engine_weights = root / ".engine"  # for a sampling engine; hidden, since no part of the run's results
        self._is_locked = False

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Let no other process write the run meanwhile; may be nested."""
        if self._is_locked:
            yield
            return
        with exclusive_lock(self.root / ".lock", self.root):
            self._is_locked = True
            try:
                yield
            finally:
                self._is_locked = False

    def check_new(self) -> None:
        """Raise UserError where a new run would overwrite an existing one or files of others.

        A first checkpoint alone is left by a run that was killed before it had written its settings.
        """
        found, checkpoints = _visible(self.root), _visible(self.checkpoint.parent)
        if self.metrics.exists() or (self.config.exists() and self.checkpoint.exists()):
            raise UserError(f"{self.root} already holds a run; continue it with --resume, or choose another output_dir")
        if others := sorted(found - {"checkpoints"} | checkpoints - {self.checkpoint.name}):
            raise UserError(f"{self.root} has files that are not of a run ({others[0]}); choose another output_dir")

    def start(self) -> None:
        """Create the folder of a new run, see `check_new`."""
        self.check_new()
        with disk_errors(self.root):
            self.root.mkdir(parents=True, exist_ok=True)

    def record(self, metrics: dict[str, Any], samples: list[dict[str, Any]]) -> None:
        """Append one step's metrics and samples."""
        append_json_lines(self.samples, [_without_nan(sample) for sample in samples])
        append_json_lines(self.metrics, [_without_nan(metrics)])

    def write_before(self, lines: str) -> None:
        """Write the completions before training, and their checksum in the format of `sha256sum --check`."""
        replace_text(self.before, lines)
        replace_text(self.before_checksum, f"{checksum(self.before)}  {self.before.name}\n")

    def is_before_intact(self) -> bool:
        """Whether the completions before training are those that were written."""
        try:
            expected = self.before_checksum.read_text(encoding="utf-8").split()
            return expected == [checksum(self.before), self.before.name]
        except (OSError, UnicodeDecodeError):
            return False

    def steps(self) -> Iterator[dict[str, Any]]:
        """Yield the metrics of each recorded step."""
        if self.metrics.exists():
            for _, metrics in read_json_lines(self.metrics):
                yield metrics

    def rewind(self, step: int) -> None:
        """Drop records after `step`, the checkpoint's, since these steps will be repeated.

        Raises UserError where a step before it has no metrics: best score and early stopping depend on all of them.
        """
        metrics, samples = (_read_until(path, step) for path in (self.metrics, self.samples))
        recorded = [record["step"] for record in metrics]
        if recorded != list(range(1, step + 1)):
            missing = min(set(range(1, step + 1)) - set(recorded), default=step)
            raise UserError(
                f"{self.metrics} does not have one record of each step up to {step}, that of the checkpoint: look at "
                f"step {missing}; restore the file from a copy, or start again in another output_dir"
            )
        for path, kept in ((self.metrics, metrics), (self.samples, samples)):
            if path.exists():
                replace_text(path, "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in kept))


def _visible(folder: Path) -> set[str]:
    """Return the names in a folder, without hidden ones."""
    return {path.name for path in folder.iterdir() if not path.name.startswith(".")} if folder.is_dir() else set()


def _read_until(path: Path, step: int) -> list[dict[str, Any]]:
    records = []
    for where, record in read_json_lines(path) if path.exists() else ():
        if not isinstance(record.get("step"), int):
            raise UserError(f"{where}: the record has no step; restore the file from a copy")
        if record["step"] <= step:
            records.append(record)
    return records


def _without_nan(value: Any) -> Any:
    """Replace NaN and infinities, which JSON does not have, by null."""
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
