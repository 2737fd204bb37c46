"""`text2grad critic check`: degenerate answers against honest ones, before a run finds out."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Column, Table

from text2grad.cli.console import Console
from text2grad.cli.options import CriticOption, Debug, UnsafeCritic, given
from text2grad.cli.progress import ProgressDisplay, silence_libraries
from text2grad.errors import UserError

if TYPE_CHECKING:
    from text2grad.critics.base import Critic
    from text2grad.critics.check.check import CheckResult, KindResult
    from text2grad.critics.check.scoring import ScoredAnswer
    from text2grad.schema import Example

critic = typer.Typer(help="Check a critic before training with it.", no_args_is_help=True)
_MAX_SHOWN = 80


@critic.callback()
def _group() -> None:
    """Check a critic before training with it."""


@critic.command()
def check(
    name: Annotated[
        str,
        typer.Argument(help="A critic, as in annotate --critic; or a YAML file or preset of a run, for its critic."),
    ],
    data: Annotated[
        str,
        typer.Argument(help="JSON lines of examples: prompts with references, completions, or both; or a data set."),
    ],
    answers: Annotated[
        Path | None,
        typer.Option(help="JSON lines with completions of the same ids: honest attempts of the untrained model."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Examples to use, at even distances in the file.")] = 32,
    option: CriticOption = None,
    unsafe_exec: UnsafeCritic = False,
    debug: Debug = False,
) -> None:
    """Find out what a policy would learn from a critic: put degenerate answers to your prompts before it.

    A policy optimises the score, whatever it rewards. Some thirty kinds of answers that nobody wants are made from your
    data: empty ones, refusals, copies of prompt and source, cut-off fragments, key-word lists, every candidate listed,
    padded and repeated answers; for code with tests also `pass`, constants, dead branches, code in comments, copied
    tests. Their scores are compared with those of honest answers: the completions in the data, for instance of the
    untrained model, and the references.

    The exit code is 1 if a kind scores above the honest average, if scores change from call to call, or if nothing can
    be learned from them: then change the critic before you train.

    Example: text2grad critic check my_critic:MyCritic prompts.jsonl --answers untrained.jsonl
    """
    from text2grad.critics.check.check import check_critic

    silence_libraries()
    console = Console()
    made = _make_critic(name, given({"unsafe": unsafe_exec or None}, option))
    examples = _read_examples(data, answers, limit)
    with ProgressDisplay(console, "scoring") as display:
        result = check_critic(
            made, examples, lambda done, total: display.progress.update(display.task, completed=done, total=total)
        )
    show_result(console, result)
    if not result.ok:
        raise typer.Exit(1)


def show_result(console: Console, result: CheckResult) -> None:
    """Print the table, where there are scores to compare, the warnings and the verdict."""
    if not (result.attempts is None and result.references is None):
        console.print(result_table(result, console.width))
    for warning in result.warnings:
        console.print(f"[yellow]Note:[/yellow] {escape(warning)}", soft_wrap=True)
    for problem in result.problems:
        console.print(f"[bold red]Problem:[/bold red] {escape(problem)}", soft_wrap=True)
    if result.ok:
        verdict = f"none of {len(result.kinds)} kinds of degenerate answers scores above the honest ones."
        console.print(f"[bold green]Passed:[/bold green] {verdict}", soft_wrap=True)
    else:
        console.print("[bold]Do not train with this critic yet: a policy learns whatever it rewards.[/bold]")


def result_table(result: CheckResult, width: int) -> Table:
    """Return the mean scores of honest answers, then a row per kind of degenerate ones, the highest mean first.

    width: of the terminal; an answer is cut to what fits.
    """
    table = Table(
        Column("answers", no_wrap=True),
        *(Column(name, justify="right", no_wrap=True) for name in ("number", "mean", "limit", "ahead")),
        Column("furthest ahead", no_wrap=True, max_width=max(14, width - 60)),
        title=f"{result.examples} example{'s' * (result.examples != 1)}",
        title_justify="left",
    )
    for name, mean in (("references", result.references), ("given completions", result.attempts)):
        if mean is not None:
            table.add_row(f"[bold]{name}[/bold]", "", f"[bold]{mean:.3f}[/bold]")
    table.add_section()
    for item in sorted(result.kinds, key=lambda item: -math.inf if item.mean is None else item.mean, reverse=True):
        table.add_row(*_row(item))
    return table


def _row(item: KindResult) -> list[str]:
    mean = "failed" if item.mean is None else f"{item.mean:.3f}"
    return [
        escape(item.kind.name),
        str(item.answers),
        f"[bold red]{mean}[/bold red]" if item.beats_honest else mean,
        f"{item.limit:.3f}",
        f"{item.ahead:.0%}",
        "" if item.furthest is None else _describe(item.furthest),
    ]


def _describe(answer: ScoredAnswer) -> str:
    text = "".join(c if c.isprintable() else " " for c in answer.example.completion[:_MAX_SHOWN])
    return escape(f'{answer.score:.2f} in {answer.example.id}: "{" ".join(text.split())}"')


def _make_critic(name: str, options: dict[str, Any]) -> Critic:
    """Return the critic of that name, else the critic of the run configuration of that name."""
    from text2grad.config.packaged import resolve_config
    from text2grad.critics.registry import available_critics, look_beside, make_critic

    if name not in available_critics() and resolve_config(Path(name)).is_file():
        from text2grad.config.run import load_config

        look_beside(Path(name))
        settings = load_config(Path(name)).critic
        return make_critic(settings.name, settings.options | options)
    return make_critic(name, options)


def _read_examples(data: str, answers: Path | None, limit: int) -> list[Example]:
    """Return some examples at even distances, with the completions of `answers` where it is given."""
    from text2grad.data.registry import load_examples
    from text2grad.schema import read_examples
    from text2grad.trainer.evaluation import fixed_subset

    examples = load_examples(data, "train")
    if answers is not None:
        completions = {example.id: example.completion for example in read_examples(answers)}
        missing = sum(example.id not in completions for example in examples)
        if missing == len(examples):
            raise UserError(f"{answers}: no record has the id of an example of {data}; give them the same ids")
        examples = [
            e.model_copy(update={"completion": completions[e.id], "feedback": None})
            for e in examples
            if e.id in completions
        ]
    return fixed_subset(examples, limit)
