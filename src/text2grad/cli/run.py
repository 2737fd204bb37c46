"""`text2grad run`: the whole pipeline."""

from __future__ import annotations

from typing import Annotated

import typer

from text2grad.cli.options import (
    Config,
    Debug,
    Model,
    OutputDir,
    Resume,
    Watch,
    explaining_critic_options,
    to_overrides,
    watching,
)
from text2grad.cli.progress import silence_libraries, terminal
from text2grad.config.arguments import check_arguments


def run(
    config: Config,
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Settings to change, as section.key=value: policy.max_steps=10 seed=2")
    ] = None,
    model: Model = None,
    output_dir: OutputDir = None,
    resume: Resume = False,
    watch: Watch = False,
    debug: Debug = False,
) -> None:
    """Train a model from a critic's feedback: sample, critique, update, evaluate, and write report.html.

    Everything is written to output_dir. An interrupted run continues with --resume and gives the same result. --watch
    serves the report while the run goes on, and prints the address.

    Example: text2grad run quickstart policy.max_steps=5 -o runs/first
    """
    check_arguments(config, overrides or [])
    from text2grad.cli.display import TerminalDisplay
    from text2grad.config.run import load_config
    from text2grad.critics.registry import look_beside
    from text2grad.pipeline import run as run_pipeline

    silence_libraries()
    options = to_overrides({"model.name": model, "output_dir": output_dir})
    look_beside(config)
    changes = [*(overrides or []), *options]
    settings = load_config(config, changes)
    with (
        explaining_critic_options(config, changes),
        watching(settings.output_dir, watch),
        TerminalDisplay(terminal()) as display,
    ):
        run_pipeline(settings, display, resume)
