"""`text2grad report`: the HTML report of a run, or of a file of feedback."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from text2grad.cli.options import Debug


def report(
    source: Annotated[Path, typer.Argument(help="A run folder, or JSON lines with feedback.")],
    debug: Debug = False,
) -> None:
    """Write RUN/report.html: metric curves, and every logged sample token by token. Works while a run is in progress.

    Of a file of feedback, write FILE.html: every completion with the words that are praised or blamed, and why.

    Example: text2grad report runs/quickstart, or text2grad report feedback.jsonl
    """
    from text2grad.report import build_feedback_report, build_report

    print(build_feedback_report(source) if source.is_file() else build_report(source))
