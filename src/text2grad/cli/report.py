"""`text2grad report`: the HTML report of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from text2grad.cli.options import Debug


def report(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    debug: Debug = False,
) -> None:
    """Write RUN/report.html: metric curves, and every logged sample token by token. Works while a run is in progress.

    Example: text2grad report runs/quickstart
    """
    from text2grad.report import build_report

    print(build_report(run))
