"""The command line: it parses, calls, and turns errors that a person can fix into one sentence."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from text2grad.cli.align import align
from text2grad.cli.annotate import annotate
from text2grad.cli.export import export
from text2grad.cli.progress import silence_libraries, terminal
from text2grad.cli.reward import reward
from text2grad.cli.train import train
from text2grad.distributed.environment import is_local_main_process
from text2grad.errors import SharedError, UserError

app = typer.Typer(
    help="Teach language models from written feedback.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
INTERRUPTED = 130  # the exit code that typer makes of Ctrl-C
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


@app.command()
def run(
    config: Annotated[Path, typer.Argument(help="The run's YAML file, for instance configs/quickstart.yaml.")],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Settings to change, as section.key=value: policy.max_steps=10 seed=2")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Same as model.name=...: smollm2, a hub name, or a folder.")] = None,
    output_dir: Annotated[Path | None, typer.Option(help="Same as output_dir=...: the run's folder.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in output_dir where it stopped.")] = False,
    debug: Debug = False,
) -> None:
    """Run the whole pipeline: sample answers, have them criticised, train, evaluate, and write report.html.

    Everything lands in output_dir. A run that was interrupted goes on with --resume as if nothing had happened.
    """
    from text2grad.cli.display import TerminalDisplay
    from text2grad.config.run import load_config
    from text2grad.pipeline import run as run_pipeline

    silence_libraries()
    named = {"model.name": model, "output_dir": output_dir}
    options = [
        f"{key}={json.dumps(str(value), ensure_ascii=False)}" for key, value in named.items() if value is not None
    ]
    settings = load_config(config, [*(overrides or []), *options])
    with TerminalDisplay(terminal()) as display:
        run_pipeline(settings, display, resume)


@app.command()
def explain(
    prompt: Annotated[str, typer.Option(help="What the model was asked.")],
    completion: Annotated[str, typer.Option(help="What it answered.")],
    feedback: Annotated[str, typer.Option(help="What you think of the answer; quoting the words that you mean helps.")],
    model: Annotated[str, typer.Option(help="smollm2, a hub name, or a folder.")] = "smollm2",
    step_size: Annotated[
        float, typer.Option(min=1e-6, help="How far the gradient step moves rewarded tokens, in nats, on average.")
    ] = 0.5,
    plain_prompts: Annotated[
        bool, typer.Option("--plain-prompts", help="Use the prompt without a chat template.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    debug: Debug = False,
) -> None:
    """Show what one comment does: which words it is about, their rewards, and every token's probability before and
    after one gradient step. Nothing is saved.

    Example: text2grad explain --prompt "When do we meet?" --completion "We meet on Friday at noon."
    --feedback 'The meeting was not on "Friday".'
    """
    from text2grad.cli.display import explanation_view
    from text2grad.explain import explain as explain_comment
    from text2grad.explain import located
    from text2grad.models.loading import load_model, load_tokenizer

    silence_libraries()
    located(feedback, completion, prompt)  # a comment that points nowhere is known before the model is loaded
    tokenizer = load_tokenizer(model)
    explanation = explain_comment(load_model(model), tokenizer, prompt, completion, feedback, step_size, plain_prompts)
    if as_json:
        print(json.dumps(explanation.to_dict(), ensure_ascii=False))
    else:
        Console().print(explanation_view(explanation))


app.command()(annotate)
app.command()(align)
app.command()(train)
app.command()(export)
app.add_typer(reward, name="reward")


@app.command()
def report(
    run: Annotated[Path, typer.Argument(help="A run's folder.")],
    debug: Debug = False,
) -> None:
    """Write RUN/report.html: curves, and every logged sample token by token. Works while a run is under way."""
    from text2grad.report import build_report

    print(build_report(run))


def _settle_torch() -> None:
    """Environment variables that torch's libraries read when they are first used; the user's own values stay."""
    # Threads that spin long while they wait stall each other where a core is shared: with another busy process on two
    # cores a training step took minutes. Never spinning slows sampling by a third.
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    # oneDNN keeps a kernel for every shape it has met, and every batch brings new ones: the default of 1 024 kernels
    # grows a run on the CPU by a gigabyte.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "128")


def main() -> None:
    """Run the command line; the exit code is 1 for an error that the user can fix, 130 for Ctrl-C."""
    _settle_torch()
    debug = "--debug" in sys.argv
    try:
        app()
    except UserError as error:
        if debug:
            raise
        if isinstance(error, SharedError) or not is_local_main_process():
            sys.exit(1)  # another process says it
        Console(stderr=True).print(f"[bold red]Error:[/bold red] {escape(str(error))}", soft_wrap=True)
        sys.exit(1)
    except OSError as error:
        if debug or not error.filename:
            raise
        Console(stderr=True).print(
            f"[bold red]Error:[/bold red] {escape(f'{error.filename}: {error.strerror}')}", soft_wrap=True
        )
        sys.exit(1)
    except SystemExit as stop:
        if stop.code == INTERRUPTED:
            on = " What was saved is whole. It goes on with --resume." if _can_resume(sys.argv[1:]) else ""
            print(f"Interrupted.{on}", file=sys.stderr)
        raise


def _can_resume(arguments: list[str]) -> bool:
    return arguments[:1] in (["run"], ["train"]) or arguments[:2] == ["reward", "train"]
