"""The `text2grad` command: assembles the commands and reports errors."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from typing import Annotated

import typer
from rich.markup import escape

from text2grad.cli.align import align
from text2grad.cli.annotate import annotate
from text2grad.cli.bench import bench
from text2grad.cli.compare import compare
from text2grad.cli.console import Console, guard_stderr
from text2grad.cli.critic import critic
from text2grad.cli.evaluate import evaluate
from text2grad.cli.explain import explain
from text2grad.cli.export import export
from text2grad.cli.generate import generate
from text2grad.cli.import_ import import_
from text2grad.cli.init import init
from text2grad.cli.push import push
from text2grad.cli.report import report
from text2grad.cli.reward import reward
from text2grad.cli.run import run
from text2grad.cli.studio import studio
from text2grad.cli.train import train
from text2grad.distributed.environment import is_local_main_process
from text2grad.errors import SharedError, UserError, describe_exception

INTERRUPTED = 130  # typer's exit code for Ctrl-C

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    init,
    run,
    train,
    bench,
    evaluate,
    compare,
    generate,
    annotate,
    align,
    import_,
    explain,
    report,
    studio,
    export,
    push,
):
    app.command(command.__name__.rstrip("_"), no_args_is_help=command not in (init, studio))(command)
app.add_typer(reward, name="reward")
app.add_typer(critic, name="critic")


def _print_version(requested: bool) -> None:
    if requested:
        print(f"text2grad {version('text2grad')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Train language models from written feedback: comments become token rewards, and rewards weight updates.

    Start with `text2grad run quickstart`, or with `text2grad init` for prompts and a critic of your own.
    """


def main() -> None:
    """Run the command line; the exit code is 1 for an error that the user can fix, 130 for Ctrl-C."""
    guard_stderr()
    _set_torch_defaults()
    debug = "--debug" in sys.argv
    try:
        app()
    except UserError as error:
        if debug:
            raise
        # Of several processes, one reports the error.
        if not isinstance(error, SharedError) and is_local_main_process():
            _print_error(str(error))
        sys.exit(1)
    except Exception as error:
        if debug:
            raise
        if isinstance(error, OSError) and error.filename:
            _print_error(f"{error.filename}: {error.strerror}")
        else:
            _print_error(f"unexpected {describe_exception(error)}; repeat the command with --debug for the traceback")
        sys.exit(1)
    except SystemExit as stop:
        if stop.code == INTERRUPTED:
            hint = " Continue with --resume." if _can_resume(sys.argv[1:]) else ""
            print(f"Interrupted.{hint}", file=sys.stderr)
        raise


def _print_error(message: str) -> None:
    Console(stderr=True).print(f"[bold red]Error:[/bold red] {escape(message)}", soft_wrap=True)


def _set_torch_defaults() -> None:
    """Set environment variables that torch's libraries read on first use; the user's own values take precedence."""
    # Threads that spin while they wait stall each other on shared cores: with another busy process on two cores a
    # training step took minutes. Never spinning slows sampling by a third.
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    # oneDNN caches a kernel per shape, and every batch has new shapes: the default of 1 024 kernels costs a CPU run a
    # gigabyte.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "128")


def _can_resume(arguments: list[str]) -> bool:
    return arguments[:1] in (["run"], ["train"]) or arguments[:2] == ["reward", "train"]
