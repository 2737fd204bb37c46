"""`text2grad export`: the model of a run for transformers, or feedback for annotation tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from text2grad.cli.console import Console
from text2grad.cli.options import Debug
from text2grad.cli.progress import silence_libraries
from text2grad.errors import UserError
from text2grad.files import replace_text
from text2grad.settings import did_you_mean

_TOOLS = ("label-studio", "argilla")


def export(
    source: Annotated[Path, typer.Argument(help="The folder of a finished run, or JSON lines with feedback.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder to write: new, empty, or an earlier export; or a file.")
    ],
    dtype: Annotated[str, typer.Option(help="Of the saved weights: bfloat16, float16 or float32.")] = "bfloat16",
    to: Annotated[
        str | None, typer.Option(help=f"Of feedback: the tool that people look at it with: {', '.join(_TOOLS)}.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Merge a run's adapter into its base: a plain model that loads with transformers alone, with a model card.

    Of a file of feedback, write the tasks of an annotation tool, for people to look at and change; `text2grad import`
    reads what the tool exports.

    Example: text2grad export runs/quickstart -o my-model, or text2grad export feedback.jsonl --to label-studio -o
    tasks.json
    """
    if to is not None:
        _export_feedback(source, output, to)
        return
    if source.is_file():
        raise UserError(f"{source}: a file of feedback; say for which tool, as in --to label-studio")
    from text2grad.checkpoint.export import export as write

    silence_libraries()
    console = Console()
    with console.status("Merging"):
        write(source, output, dtype)
    console.print(f'AutoModelForCausalLM.from_pretrained("{escape(str(output))}") loads it.', soft_wrap=True)


def _export_feedback(source: Path, output: Path, tool: str) -> None:
    from text2grad.critics.human.annotation_tasks import LABEL_STUDIO_CONFIG, TOOLS
    from text2grad.schema import read_examples

    if tool not in TOOLS:
        raise UserError(f'no tool "{tool}"{did_you_mean(tool, TOOLS)}')
    if output.exists():
        raise UserError(f"{output} exists; give another file")
    tasks = [TOOLS[tool](example) for example in read_examples(source)]
    replace_text(output, json.dumps(tasks, ensure_ascii=False, indent=1) + "\n")
    console = Console(markup=False, highlight=False, soft_wrap=True)
    console.print(f"{len(tasks)} tasks written to {output}.")
    if tool == "label-studio":
        console.print(f"The labelling interface of the project:\n{LABEL_STUDIO_CONFIG}")
    else:
        console.print(
            "Fields: prompt, completion, critique. Questions: spans (good, poor) on completion; the texts "
            "span_comments, replacement and missing, one line per span or omission. Load the file with "
            "dataset.records.from_json."
        )
