"""Training runs that the studio starts: `text2grad train --feedback` in a process of its own, followed by its files."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import yaml

from text2grad.checkpoint.run_folder import RunFolder
from text2grad.errors import UserError
from text2grad.files import disk_errors, read_json_lines, unused_path
from text2grad.schema import Example, Strict, write_examples

_LOG_LINES = 12


class RunState(Strict):
    """How far a run is. metrics: one record per step; log: the last lines of its output."""

    id: str
    folder: str
    comments: int
    state: Literal["running", "finished", "failed", "stopped"]
    step: int
    max_steps: int | None
    seconds: float
    metrics: list[dict[str, Any]]
    log: list[str]
    has_report: bool


class TrainingRun:
    """A training process and its folder."""

    def __init__(self, folder: Path, comments: int, process: subprocess.Popen[bytes], log: Path) -> None:
        self.folder, self.comments, self.process, self.log = folder, comments, process, log
        self._is_stopped, self._began = False, time.monotonic()
        self._seconds: float | None = None

    def stop(self) -> None:
        """End the process; its last checkpoint stays, from which the run can be resumed."""
        self._is_stopped = True
        self.process.terminate()

    def state(self) -> RunState:
        """Read where the run is from its files."""
        run = RunFolder(self.folder)
        code = self.process.poll()
        if code is not None and self._seconds is None:
            self._seconds = time.monotonic() - self._began
        records = [record for _, record in read_json_lines(run.metrics)] if run.metrics.is_file() else []
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines() if self.log.is_file() else []
        ended = "stopped" if self._is_stopped else "finished" if code == 0 else "failed"
        return RunState(
            id=self.folder.name,
            folder=str(self.folder),
            comments=self.comments,
            state="running" if code is None else ended,
            step=max((record.get("step", 0) for record in records), default=0),
            max_steps=_max_steps(run.config),
            seconds=self._seconds if self._seconds is not None else time.monotonic() - self._began,
            metrics=[_numbers(record) for record in records],
            log=[line for line in lines if line.strip()][-_LOG_LINES:],
            has_report=run.report.is_file(),
        )


class TrainingRuns:
    """The runs of this session, one at a time, in `runs/` of the folder that is open."""

    def __init__(self, folder: Path, model: str | None, overrides: Sequence[str] = ()) -> None:
        self._folder, self._model, self._overrides = folder / "runs", model, list(overrides)
        self._lock = threading.Lock()
        self._runs: dict[str, TrainingRun] = {}

    def start(self, examples: list[Example]) -> RunState:
        """Train on feedback; UserError where there is none, or where a run is still going."""
        with self._lock:
            if not examples:
                raise UserError("there are no comments to train on; mark some words first")
            if running := [name for name, run in self._runs.items() if run.process.poll() is None]:
                raise UserError(f"{running[0]} is still training; wait for it, or stop it")
            folder = unused_path(self._folder / "studio")
            feedback, log = folder.with_name(f"{folder.name}.studio.jsonl"), folder.with_name(f"{folder.name}.log")
            with disk_errors(self._folder):
                self._folder.mkdir(parents=True, exist_ok=True)
                write_examples(feedback, examples)
            command = [sys.executable, "-m", "text2grad", "train", "--feedback", str(feedback), "-o", str(folder)]
            command += ["--model", self._model] if self._model else []
            with log.open("wb") as out:
                process = subprocess.Popen(
                    [*command, *self._overrides],
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    env=os.environ | {"COLUMNS": "100"},
                    start_new_session=True,  # Ctrl-C in the studio's terminal does not end the training
                )
            run = self._runs[folder.name] = TrainingRun(folder, len(examples), process, log)
            return run.state()

    def get(self, name: str) -> TrainingRun:
        """Return a run of this session by its name."""
        if name not in self._runs:
            raise UserError(f'there is no run "{name}" in this session')
        return self._runs[name]

    def states(self) -> list[RunState]:
        """Return all runs of this session, the last first."""
        return [run.state() for run in reversed(self._runs.values())]


def _max_steps(config: Path) -> int | None:
    if not config.is_file():
        return None
    settings = yaml.safe_load(config.read_text(encoding="utf-8"))
    steps = (settings.get("policy") or {}).get("max_steps") if isinstance(settings, dict) else None
    return steps if isinstance(steps, int) else None


def _numbers(record: dict[str, Any]) -> dict[str, Any]:
    """Return the metrics that the page draws: all plain numbers."""
    return {name: value for name, value in record.items() if isinstance(value, int | float)}
