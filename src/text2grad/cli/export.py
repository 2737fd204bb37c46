"""`text2grad export`: write the model of a run for transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from text2grad.cli.console import Console
from text2grad.cli.options import Debug
from text2grad.cli.progress import silence_libraries


def export(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder to write: new, empty, or an earlier export.")
    ],
    dtype: Annotated[str, typer.Option(help="Of the saved weights: bfloat16, float16 or float32.")] = "bfloat16",
    debug: Debug = False,
) -> None:
    """Merge a run's adapter into its base: a plain model that loads with transformers alone, with a model card.

    Example: text2grad export runs/quickstart -o my-model
    """
    from text2grad.checkpoint.export import export as write

    silence_libraries()
    console = Console()
    with console.status("Merging"):
        write(run, output, dtype)
    console.print(f'AutoModelForCausalLM.from_pretrained("{escape(str(output))}") loads it.', soft_wrap=True)
