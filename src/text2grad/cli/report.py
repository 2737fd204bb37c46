"""`text2grad report`: the HTML report of a run, or of a file of feedback."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from text2grad.cli.options import Debug
from text2grad.cli.progress import silence_libraries


def report(
    source: Annotated[
        Path,
        typer.Argument(help="A run folder, JSON lines with feedback, or the output folder of TRL or prime-rl."),
    ],
    tokenizer: Annotated[
        str | None, typer.Option(help="The model whose tokenizer reads prime-rl's token exports: a name or a folder.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Write RUN/report.html: metric curves, and every logged sample token by token. Works while a run is in progress.

    Of a file of feedback, write FILE.html: every completion with the words that are praised or blamed, and why. The
    same page of samples is made of what others log: completions of TRL's GRPOTrainer (log_completions), and token
    exports of prime-rl (enable_token_export).

    Example: text2grad report runs/quickstart, or text2grad report feedback.jsonl
    """
    from text2grad.report import build_feedback_report, build_report

    if tokenizer is not None:
        silence_libraries()
    print(build_feedback_report(source) if source.is_file() else build_report(source, tokenizer))
