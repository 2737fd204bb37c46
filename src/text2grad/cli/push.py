"""`text2grad push`: a run's model on the Hugging Face hub."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Column, Table

from text2grad.cli.console import Console
from text2grad.cli.options import Debug
from text2grad.cli.progress import silence_libraries
from text2grad.errors import UserError


def push(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run.")],
    repository: Annotated[str, typer.Argument(help="OWNER/NAME on the hub; created if it does not exist.")],
    merged: Annotated[
        bool, typer.Option("--merged", help="Upload the plain model with the adapter merged, in bfloat16.")
    ] = False,
    private: Annotated[bool, typer.Option("--private", help="Create the repository as a private one.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the files that would be uploaded, and upload nothing.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Upload the model that a run has trained, with tokenizer and model card.

    Of a run with an adapter, the adapter is uploaded, unless --merged is given. The token comes from HF_TOKEN or from
    `hf auth login`, and is never shown.

    Example: text2grad push runs/quickstart me/my-model --dry-run
    """
    from text2grad.checkpoint.push import staged, upload

    silence_libraries()
    if repository.count("/") != 1 or not all(repository.split("/")):
        raise UserError(f'"{repository}" is no name of a repository; write OWNER/NAME')
    console = Console()
    with staged(run, repository, merged) as folder:
        console.print(_files_table(folder))
        if dry_run:
            console.print(f"Nothing was uploaded to {escape(repository)}.", soft_wrap=True)
            return
        with console.status("Uploading"):
            address = upload(folder, repository, private)
    console.print(f"Uploaded: {escape(address)}", soft_wrap=True)


def _files_table(folder: Path) -> Table:
    table = Table("file", Column("bytes", justify="right"))
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        table.add_row(escape(str(path.relative_to(folder))), f"{path.stat().st_size:,}")
    return table
