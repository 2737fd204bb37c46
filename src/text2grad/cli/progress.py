"""The progress bar of all commands, and the silencing of those of the libraries."""

from __future__ import annotations

import time
from typing import Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from text2grad.cli.console import Console
from text2grad.distributed.environment import is_main_process

LINE_SECONDS = 10.0  # between progress lines where the output is not a terminal


class ProgressDisplay:
    """A context manager with one progress bar that ends in a field `metrics`; without a terminal nothing is drawn."""

    def __init__(self, console: Console, description: str = "") -> None:
        self.console = console
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[metrics]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self.task = self.progress.add_task(description, total=None, metrics="")

    def __enter__(self) -> Self:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()


class PhaseDisplay(ProgressDisplay):
    """A progress bar of several phases; without a terminal it prints their names, and a line now and then."""

    def on_phase(self, name: str) -> None:
        """Show the name of the phase that starts."""
        self.progress.reset(self.task, total=None, description=name, metrics="")
        self._phase, self._last_line = name, time.monotonic()
        if not self.console.is_terminal:
            self.console.print(name)

    def on_progress(self, done: int, total: int) -> None:
        """Update the bar; where there is no terminal, print a line now and then."""
        self.progress.update(self.task, total=total, completed=done)
        if not self.console.is_terminal and time.monotonic() - self._last_line >= LINE_SECONDS:
            self._last_line = time.monotonic()
            self.console.print(f"{self._phase}  {done}/{total}")


def terminal() -> Console:
    """Return the console of a command, which is quiet on all processes but the main one."""
    return Console(quiet=not is_main_process())


def silence_libraries() -> None:
    """Disable the progress bars and warnings of the libraries."""
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
