"""Metrics to TensorBoard, Weights & Biases or Trackio, through Accelerate.

A tracker gets numbers and the optimiser's settings, which hold no secrets; its own key it takes from its environment.
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


def tracker_names(given: Any) -> Any:
    """A name, several, `none` or nothing, as a tuple without doubles; what is neither is left to be refused."""
    names = [given] if isinstance(given, str) else () if given is None else given
    if not isinstance(names, list | tuple):
        return given
    return tuple(dict.fromkeys(name for name in names if name != "none"))


def require_trackers(names: Iterable[Tracker]) -> None:
    """Refuse a tracker whose package is missing; Accelerate would leave it out without a word."""
    for name in names:
        if find_spec(name) is None:
            raise UserError(
                f'report_to names {name}, which is not installed: `pip install "text2grad[{name}]"` installs it'
            )


class Trackers(Callback):
    """Hands every step's numbers to the trackers that the accelerator was made with."""

    def __init__(self, accelerator: Accelerator, settings: dict[str, Any], run: Path) -> None:
        """settings: shown with the run. run: its folder, after which it is called."""
        self.accelerator, self.settings, self.run = accelerator, settings, run

    def on_start(self, step: int, max_steps: int) -> None:
        options = {
            "tensorboard": {"purge_step": step + 1},  # what a killed run logged after its checkpoint happens again
            "wandb": {"name": self.run.name, "dir": str(self.run)},
            "trackio": {"name": self.run.name, "resume": "allow" if step else "never"},
        }
        self.accelerator.init_trackers(PROJECT, plain_values(self.settings), options)

    def on_step(self, metrics: Metrics) -> None:
        self.accelerator.log(numbers(metrics), step=metrics["step"])

    def on_end(self) -> None:
        # Not `end_training`: it would also take down the process group, and the run is not over.
        for tracker in self.accelerator.trackers:
            tracker.finish()
        self.accelerator.trackers.clear()


def numbers(metrics: Metrics) -> dict[str, float]:
    """What can be drawn: finite numbers, without the step that they are drawn over."""
    return {
        name: value
        for name, value in metrics.items()
        if name != "step" and isinstance(value, int | float) and math.isfinite(value)
    }


def plain_values(settings: dict[str, Any]) -> dict[str, str | int | float | bool]:
    """Settings with dotted names, lists as text, and without those that are null: all that trackers take."""
    return {
        name: value if isinstance(value, str | int | float | bool) else str(value)
        for name, value in flatten(settings).items()
        if value is not None
    }
