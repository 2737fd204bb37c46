"""The progress bar of all commands, and the silencing of those of the libraries."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from text2grad.distributed.environment import is_main_process


def progress_bar(console: Console) -> Progress:
    """Return a bar whose tasks have a description and a field `metrics`; without a terminal nothing is drawn."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[metrics]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    )


def terminal() -> Console:
    """Return the console of a command, which is quiet on all processes but the main one."""
    return Console(quiet=not is_main_process())


def silence_libraries() -> None:
    """Disable the progress bars and warnings of the libraries."""
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
