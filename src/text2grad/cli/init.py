"""`text2grad init`: a folder to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from text2grad.cli.console import Console
from text2grad.cli.options import Debug
from text2grad.config.packaged import ACCELERATE_CONFIGS, TEMPLATE, accelerate_names
from text2grad.errors import UserError
from text2grad.settings import did_you_mean


def init(
    folder: Annotated[Path, typer.Argument(help="Created if it does not exist.")] = Path(),
    accelerate: Annotated[
        str | None,
        typer.Option(help=f"Also write accelerate.yaml, for several GPUs: {', '.join(accelerate_names())}."),
    ] = None,
    debug: Debug = False,
) -> None:
    """Write an example run: a commented config.yaml, my_critic.py with a critic to change, and a few prompts.

    Existing files are never overwritten.

    Example: text2grad init my-run
    """
    sources = {path.name: path for path in sorted(TEMPLATE.iterdir()) if path.is_file()}
    if accelerate is not None:
        if accelerate not in accelerate_names():
            raise UserError(f'no Accelerate configuration "{accelerate}"{did_you_mean(accelerate, accelerate_names())}')
        sources["accelerate.yaml"] = ACCELERATE_CONFIGS / f"{accelerate}.yaml"
    existing = [str(folder / name) for name in sources if (folder / name).exists()]
    if existing:
        raise UserError(f"{', '.join(existing)} already there; nothing was written: choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    for name, source in sources.items():
        (folder / name).write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    _print_next_steps(folder, list(sources))


def _print_next_steps(folder: Path, names: list[str]) -> None:
    launcher = "accelerate launch --config_file accelerate.yaml -m " if "accelerate.yaml" in names else ""
    steps = [f"cd {folder}"] if folder != Path() else []
    steps.append(f"{launcher}text2grad run config.yaml")
    console = Console(highlight=False, markup=False, soft_wrap=True)
    console.print(f"Wrote {', '.join(names)} to {folder.resolve()}.")
    console.print("\nNext:\n" + "\n".join(f"  {step}" for step in steps))
    console.print("\nThen change my_critic.py and prompts.jsonl; config.yaml explains its settings.")
