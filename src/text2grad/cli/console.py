"""The console of all commands: whatever a model, a data set or a server wrote, it cannot command the terminal."""

from __future__ import annotations

import logging
import sys
import traceback
import warnings
from collections.abc import Iterable
from types import TracebackType

import rich.console
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment

from text2grad.text.printable import printable

_default_format_warning = warnings.formatwarning


class Console(rich.console.Console):
    """Rich's console, with every text made printable. Colours and cursor movements are Rich's own."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of what is printed."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else printable(text), style, control)


class PrintableFormatter(logging.Formatter):
    """Formats log records as printable text."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the message, with the traceback of an exception."""
        return printable(super().format(record))


def guard_stderr() -> None:
    """Make tracebacks, warnings and log messages printable: they may quote any text."""
    sys.excepthook = _print_exception
    warnings.formatwarning = _format_warning
    if logging.lastResort is not None:  # the handler of loggers that have none
        logging.lastResort.setFormatter(PrintableFormatter())


def _format_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    return printable(_default_format_warning(message, category, filename, lineno, line))


def _print_exception(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    print(printable("".join(traceback.format_exception(kind, error, trace))), end="", file=sys.stderr)
