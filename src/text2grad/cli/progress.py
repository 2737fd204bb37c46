"""How long work shows itself: one progress bar, and nothing of the libraries' own."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from text2grad.distributed.environment import is_main_process


def progress_bar(console: Console) -> Progress:
    """A bar whose tasks have a description and a field `figures`; nothing is drawn where there is no terminal."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[figures]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    )


def terminal() -> Console:
    """Where a run shows itself; of several processes only the main one does."""
    return Console(quiet=not is_main_process())


def silence_libraries() -> None:
    """Switch the libraries' own progress bars and warnings off: ours say what is going on."""
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
