"""Metrics to TensorBoard, Weights & Biases or Trackio, through Accelerate.

Trackers get numbers and the trainer's settings, which hold no secrets; they read their own keys from the environment.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from text2grad.errors import UserError
from text2grad.settings import flatten
from text2grad.trainer.callbacks import Callback, Metrics

if TYPE_CHECKING:
    from accelerate import Accelerator

Tracker = Literal["tensorboard", "wandb", "trackio"]
PROJECT = "text2grad"


def parse_tracker_names(given: Any) -> Any:
    """Return a name, a list of names, `none` or null as a tuple without duplicates; other values are unchanged."""
    names = [given] if isinstance(given, str) else () if given is None else given
    if not isinstance(names, list | tuple):
        return given
    return tuple(dict.fromkeys(name for name in names if name != "none"))


def require_trackers(names: Iterable[Tracker]) -> None:
    """Raise UserError where a tracker's package is missing; Accelerate would skip it silently."""
    for name in names:
        if find_spec(name) is None:
            raise UserError(
                f'report_to names {name}, which is not installed: `pip install "text2grad[{name}]"` installs it'
            )


class Trackers(Callback):
    """Logs metrics to the trackers of the accelerator."""

    def __init__(self, accelerator: Accelerator, settings: dict[str, Any], run: Path) -> None:
        """settings: logged with the run. run: its folder, which names it."""
        self.accelerator, self.settings, self.run = accelerator, settings, run

    def on_start(self, step: int, max_steps: int) -> None:
        options = {
            "tensorboard": {"purge_step": step + 1},  # a resumed run repeats the steps after its checkpoint
            "wandb": {"name": self.run.name, "dir": str(self.run)},
            "trackio": {"name": self.run.name, "resume": "allow" if step else "never"},
        }
        self.accelerator.init_trackers(PROJECT, plain_values(self.settings), options)

    def on_log(self, metrics: Metrics) -> None:
        self.accelerator.log(finite_numbers(metrics), step=metrics["step"])

    def on_end(self) -> None:
        # Not `end_training`: it would also destroy the process group, and the run is not over.
        for tracker in self.accelerator.trackers:
            tracker.finish()
        self.accelerator.trackers.clear()


def finite_numbers(metrics: Metrics) -> dict[str, float]:
    """Return the finite numbers among the metrics, without the step."""
    return {
        name: value
        for name, value in metrics.items()
        if name != "step" and isinstance(value, int | float) and math.isfinite(value)
    }


def plain_values(settings: dict[str, Any]) -> dict[str, str | int | float | bool]:
    """Flatten settings to dotted names; lists become strings and nulls are dropped, as trackers require."""
    return {
        name: value if isinstance(value, str | int | float | bool) else str(value)
        for name, value in flatten(settings).items()
        if value is not None
    }
