"""Options that several commands share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

Debug = Annotated[bool, typer.Option("--debug", help="Show the full traceback if the command fails.")]
Model = Annotated[str | None, typer.Option(help="Short for model.name=...: smollm2, a hub name, or a folder.")]
OutputDir = Annotated[Path | None, typer.Option("--output-dir", "-o", help="Short for output_dir=...: the run folder.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue the run in output_dir from its last checkpoint.")]
RetryFailed = Annotated[bool, typer.Option("--retry-failed", help="Retry records whose feedback failed.")]


def to_overrides(values: dict[str, object]) -> list[str]:
    """Format options that were given as `section.key=value` settings; None means not given."""
    return [f"{key}={json.dumps(str(value), ensure_ascii=False)}" for key, value in values.items() if value is not None]
