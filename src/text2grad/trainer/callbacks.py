"""Hooks into a run: who is told what happens, and who may ask it to stop."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from text2grad.distributed.processes import Processes

Metrics = dict[str, Any]


class Callback(Protocol):
    """Is told what happens in a run; derive from it and override what you need.

    `on_step` and `on_evaluate` may return a sentence: it asks the run to end after this step, and is logged as the
    reason. The step is saved, and whatever follows training still follows.
    """

    def on_start(self, step: int, max_steps: int) -> None:
        """Training begins, or goes on, after `step` steps."""
        return

    def on_step(self, metrics: Metrics) -> str | None:
        """A step was recorded; its metrics hold the figures of its evaluation, where it had one."""
        return None

    def on_evaluate(self, figures: Metrics) -> str | None:
        """Held-out prompts were answered and judged; comes before `on_step` of the same step."""
        return None

    def on_save(self, folder: Path) -> None:
        """A checkpoint is whole: `last` to resume from, `best` or `final` with the model."""
        return

    def on_end(self) -> None:
        """Training ended, be it by an error."""
        return


class Callbacks(Callback):
    """Several as one: all of them are told, and the first reason to stop is the one that counts.

    They are told on the main process only, since they write, print and upload. The others wait, and get the reason.
    """

    def __init__(self, members: Iterable[Callback], processes: Processes) -> None:
        self.members = list(members)
        self.processes = processes

    def on_start(self, step: int, max_steps: int) -> None:
        self._tell(lambda member: member.on_start(step, max_steps))

    def on_step(self, metrics: Metrics) -> str | None:
        return self._tell(lambda member: member.on_step(metrics))

    def on_evaluate(self, figures: Metrics) -> str | None:
        return self._tell(lambda member: member.on_evaluate(figures))

    def on_save(self, folder: Path) -> None:
        self._tell(lambda member: member.on_save(folder))

    def on_end(self) -> None:
        # Nobody is waited for: after an error the others may never come here.
        for member in self.members if self.processes.is_main else ():
            member.on_end()

    def _tell(self, tell: Callable[[Callback], str | None]) -> str | None:
        return self.processes.run_on_main(lambda: first_reason([tell(member) for member in self.members]))


def first_reason(reasons: Iterable[str | None]) -> str | None:
    """The first that is one."""
    return next((reason for reason in reasons if reason), None)
