"""Callbacks of a training run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from text2grad.distributed.processes import Processes

Metrics = dict[str, Any]


class Callback(Protocol):
    """Hooks into a run; derive from it and override what you need.

    `on_step` and `on_evaluate` may return a string: the run then ends after this step and logs it as the reason. The
    step is saved, and everything that follows training still runs.
    """

    def on_start(self, step: int, max_steps: int) -> None:
        """Called when training starts, or is resumed, after `step` steps."""
        return

    def on_step(self, metrics: Metrics) -> str | None:
        """Called after every step, with its metrics, including those of its evaluation."""
        return None

    def on_log(self, metrics: Metrics) -> None:
        """Called after `on_step` with the metrics of every `logging_steps`-th step, evaluated step and the last one."""
        return

    def on_evaluate(self, metrics: Metrics) -> str | None:
        """Called after an evaluation on held-out prompts, before `on_step` of the same step."""
        return None

    def on_save(self, folder: Path) -> None:
        """Called after a checkpoint was written: `last` to resume from, `best` or `final` with the model."""
        return

    def on_end(self) -> None:
        """Called when training ended, also after an error."""
        return


class Callbacks(Callback):
    """Several callbacks as one; the first reason to stop counts.

    They run on the main process only, since they write, print and upload. The others wait, and get the reason.
    """

    def __init__(self, members: Iterable[Callback], processes: Processes) -> None:
        self.members = list(members)
        self.processes = processes

    def on_start(self, step: int, max_steps: int) -> None:
        self._call(lambda member: member.on_start(step, max_steps))

    def on_step(self, metrics: Metrics) -> str | None:
        return self._call(lambda member: member.on_step(metrics))

    def on_log(self, metrics: Metrics) -> None:
        self._call(lambda member: member.on_log(metrics))

    def on_evaluate(self, metrics: Metrics) -> str | None:
        return self._call(lambda member: member.on_evaluate(metrics))

    def on_save(self, folder: Path) -> None:
        self._call(lambda member: member.on_save(folder))

    def on_end(self) -> None:
        # No synchronisation here: after an error the other processes may never arrive.
        for member in self.members if self.processes.is_main else ():
            member.on_end()

    def _call(self, hook: Callable[[Callback], str | None]) -> str | None:
        return self.processes.run_on_main(lambda: first_reason([hook(member) for member in self.members]))


def first_reason(reasons: Iterable[str | None]) -> str | None:
    """Return the first reason that is not None or empty."""
    return next((reason for reason in reasons if reason), None)
