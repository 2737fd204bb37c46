"""`text2grad init`: a folder to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from text2grad.cli.console import Console
from text2grad.cli.import_ import import_table
from text2grad.cli.options import Debug, pairs
from text2grad.config.packaged import ACCELERATE_CONFIGS, COMMENTS_TEMPLATE, TEMPLATE, accelerate_names
from text2grad.errors import UserError
from text2grad.settings import did_you_mean

_FEEDBACK, _HELD_OUT_FILE = "feedback.jsonl", "heldout.jsonl"
_FEW = 10  # held-out prompts, with fewer of which only a very large difference is significant


def init(
    folder: Annotated[Path, typer.Argument(help="Created if it does not exist.")] = Path(),
    comments: Annotated[
        Path | None,
        typer.Option(help="Start from people's comments: a table or an export, as `text2grad import` reads it."),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(help="With --comments: a column whose name does not tell, as field=column; may be repeated."),
    ] = None,
    accelerate: Annotated[
        str | None,
        typer.Option(help=f"Also write accelerate.yaml, for several GPUs: {', '.join(accelerate_names())}."),
    ] = None,
    debug: Debug = False,
) -> None:
    """Write an example run: a commented config.yaml, my_critic.py with a critic to change, and a few prompts.

    With --comments, the run trains on these: feedback.jsonl has the comments, heldout.jsonl every fifth of their
    prompts, to compare answers before and after. Existing files are never overwritten.

    Example: text2grad init my-run, or text2grad init my-run --comments comments.csv
    """
    template = TEMPLATE if comments is None else COMMENTS_TEMPLATE
    sources = {path.name: path for path in sorted(template.iterdir()) if path.is_file()}
    if accelerate is not None:
        if accelerate not in accelerate_names():
            raise UserError(f'no Accelerate configuration "{accelerate}"{did_you_mean(accelerate, accelerate_names())}')
        sources["accelerate.yaml"] = ACCELERATE_CONFIGS / f"{accelerate}.yaml"
    names = [*sources, *([] if comments is None else [_FEEDBACK, _HELD_OUT_FILE])]
    existing = [str(folder / name) for name in names if (folder / name).exists()]
    if existing:
        raise UserError(f"{', '.join(existing)} already there; nothing was written: choose another folder")
    if comments is not None:
        existed = folder.exists()
        try:
            _write_comments(comments, folder, column)
        except UserError:
            if not existed and folder.exists():
                folder.rmdir()
            raise
    elif column:
        raise UserError("--column is for the table of --comments; give both or neither")
    folder.mkdir(parents=True, exist_ok=True)
    for name, source in sources.items():
        (folder / name).write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    _print_next_steps(folder, names)


def _write_comments(comments: Path, folder: Path, column: list[str] | None) -> None:
    """Import the comments, and hold out every fifth prompt with the comments on its answers."""
    from text2grad.schema import Example, read_examples, write_examples

    feedback = folder / _FEEDBACK
    import_table(str(comments), feedback, pairs(column, "--column prompt=Frage"), {})
    examples = list(read_examples(feedback))
    prompts = {example.prompt_text: Example(id=example.id, prompt=example.prompt) for example in examples}
    heldout = dict(list(prompts.items())[4::5] or list(prompts.items())[1:2])
    if not heldout:
        feedback.unlink()
        raise UserError(
            f"{comments}: all comments are on one prompt; `text2grad import` and `train --feedback` need no other"
        )
    write_examples(feedback, [example for example in examples if example.prompt_text not in heldout])
    write_examples(folder / _HELD_OUT_FILE, heldout.values())
    few = f" That is few: add prompts like them to {_HELD_OUT_FILE}." if len(heldout) < _FEW else ""
    console = Console(soft_wrap=True)
    console.print(f"{len(heldout)} of {len(prompts)} prompts are held out, with the comments on their answers.{few}")


def _print_next_steps(folder: Path, names: list[str]) -> None:
    launcher = "accelerate launch --config_file accelerate.yaml -m " if "accelerate.yaml" in names else ""
    steps = [f"cd {folder}"] if folder != Path() else []
    if _FEEDBACK in names:
        steps.append(f"text2grad report {_FEEDBACK}      # look at what was understood")
        steps.append(f"{launcher}text2grad train --config config.yaml --feedback {_FEEDBACK}")
        then = "In config.yaml, say under critic.options what a good answer has: the held-out answers are judged by it."
    else:
        steps.append(f"{launcher}text2grad run config.yaml")
        then = "Then change my_critic.py and prompts.jsonl; config.yaml explains its settings."
    console = Console(highlight=False, markup=False, soft_wrap=True)
    console.print(f"Wrote {', '.join(names)} to {folder.resolve()}.")
    console.print("\nNext:\n" + "\n".join(f"  {step}" for step in steps))
    console.print(f"\n{then}")
