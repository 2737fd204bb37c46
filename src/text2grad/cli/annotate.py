"""`text2grad annotate`: feedback for every record of a file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from text2grad.cli.progress import progress_bar
from text2grad.errors import UserError
from text2grad.files import open_maybe_gzip

if TYPE_CHECKING:
    from text2grad.annotate import Summary
    from text2grad.critics.base import Critic

_LINE_SECONDS = 10.0  # how often a log file, which has no live bar, gets a line
_LLM = "LLM critics"


def annotate(
    source: Annotated[
        Path, typer.Argument(help="JSON lines with id, prompt and completion; reference, tests and meta are used too.")
    ],
    critic: Annotated[
        str,
        typer.Option(
            help="Who comments: grounding (summaries), qa (answers to questions), code (runs the tests), lint (ruff), "
            "human (a file of comments), llm (an OpenAI-compatible server), local (a model in this process), "
            "reward:PATH (a trained reward model), or your own class as package.module:Class."
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Where the records with their feedback go. If it is there, the run continues it."
        ),
    ],
    base_url: Annotated[
        str | None,
        typer.Option(help="The server, as http://localhost:8000/v1. Default: OpenAI's.", rich_help_panel=_LLM),
    ] = None,
    llm_model: Annotated[
        str | None,
        typer.Option(help="The model's name on that server, or, for local, as --model.", rich_help_panel=_LLM),
    ] = None,
    api_key_env: Annotated[
        str | None,
        typer.Option(
            help="The environment variable that holds the key (OPENAI_API_KEY). A key is never an option and never "
            "written anywhere.",
            rich_help_panel=_LLM,
        ),
    ] = None,
    task: Annotated[
        str | None, typer.Option(help="Which prompt: general, summarise, code or qa.", rich_help_panel=_LLM)
    ] = None,
    prompt: Annotated[
        Path | None, typer.Option(help="Your own prompt, a Jinja template, instead.", rich_help_panel=_LLM)
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="The most that a reply may have.", rich_help_panel=_LLM)
    ] = None,
    temperature: Annotated[float | None, typer.Option(min=0, help="0 by default.", rich_help_panel=_LLM)] = None,
    timeout: Annotated[
        float | None, typer.Option(min=0.001, help="Seconds after which a request is given up.", rich_help_panel=_LLM)
    ] = None,
    price_in: Annotated[
        float | None, typer.Option(min=0, help="Price of a million prompt tokens.", rich_help_panel=_LLM)
    ] = None,
    price_out: Annotated[
        float | None, typer.Option(min=0, help="Price of a million reply tokens.", rich_help_panel=_LLM)
    ] = None,
    max_cost: Annotated[
        float | None,
        typer.Option(min=0, help="Stop before this run costs more, in the prices' currency.", rich_help_panel=_LLM),
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option(min=1, help="Requests under way at once (16), for critics that wait on a network.")
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="Records a write, and a call of critics that compute themselves (32).")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="Any other setting of the critic, as name=value; may be given often.")
    ] = None,
    unsafe_exec: Annotated[
        bool, typer.Option("--unsafe-exec", help="Let the code critic run answers where no sandbox can be had.")
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Ask again about the records whose feedback failed.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Have a critic comment on every answer of a file, and find the words that each comment is about.

    It can be stopped at any moment, by Ctrl-C, kill -9 or a power cut: the same command continues where it stopped, and
    asks about nothing twice. Answers of a critic with other settings are never mixed in; they are moved to
    NAME.stale.jsonl. An answer that could not be had or read is kept as failed, with the reason.

    Example: text2grad annotate answers.jsonl --critic llm --base-url http://localhost:8000/v1 --llm-model qwen3
    -o feedback.jsonl
    """
    from text2grad.critics.registry import make_critic

    named = {
        "base_url": base_url,
        "model": llm_model,
        "api_key_env": api_key_env,
        "task": task,
        "prompt": prompt,
        "max_tokens": max_tokens,
        "temperature": temperature,
        "timeout": timeout,
        "price_in": price_in,
        "price_out": price_out,
        "max_cost": max_cost,
    }
    if unsafe_exec:
        named["unsafe"] = True
    options = {name: value for name, value in named.items() if value is not None} | parsed_options(option or [])
    watched(source, output, make_critic(critic, options), concurrency, batch_size, retry_failed)


def watched(
    source: Path,
    output: Path,
    critic: Critic,
    concurrency: int | None = None,
    batch_size: int | None = None,
    retry_failed: bool = False,
) -> None:
    """Annotate with a bar; what is finished when it stops, for whatever reason, is saved and summed up."""
    from text2grad.annotate import annotate as run

    with AnnotationDisplay(Console(), count_lines(source)) as display:
        try:
            run(
                source,
                output,
                critic,
                concurrency=concurrency,
                batch_size=batch_size,
                retry_failed=retry_failed,
                on_progress=display.update,
            )
        except KeyboardInterrupt:
            display.finished(output)
            display.console.print("What is finished is saved; the same command continues where it stopped.")
            raise typer.Exit(130) from None
        except UserError:
            display.finished(output)
            raise
        display.finished(output)


class AnnotationDisplay:
    """A bar with rate, failures, cost and time left; then a table of what the file holds."""

    def __init__(self, console: Console, total: int) -> None:
        self.console = console
        self._summary: Summary | None = None
        self._said = time.monotonic()
        self._progress = progress_bar(console)
        self._total = total
        self._bar = self._progress.add_task("annotating", total=None, figures="")

    def __enter__(self) -> AnnotationDisplay:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def update(self, summary: Summary) -> None:
        figures = f"{summary.rate:.1f}/s"
        if summary.failed:
            figures += f"  [yellow]{summary.failed} failed[/yellow]"
        if summary.cost:
            figures += f"  cost {summary.cost:.4f}"
        if self._summary is None:
            # What earlier runs have done is no measure of how long the rest takes.
            self._progress.reset(self._bar, total=self._total, completed=summary.records)
        self._summary = summary
        self._progress.update(self._bar, completed=summary.records, figures=figures)
        if not self.console.is_terminal and time.monotonic() - self._said >= _LINE_SECONDS:
            self._said = time.monotonic()
            self.console.print(f"{summary.records}/{self._total}  {figures}")

    def finished(self, output: Path) -> None:
        self._progress.stop()
        if self._summary is not None:
            self.console.print(summary_table(self._summary))
            self.console.print(f"Feedback: {escape(str(output))}", soft_wrap=True)


def summary_table(summary: Summary) -> Table:
    """The summary for a person; rows without anything to say are left out."""
    table = Table(show_header=False)
    table.add_column()
    table.add_column(justify="right")
    rows: list[tuple[str, str]] = [
        ("records", f"{summary.records} ({summary.added} new)"),
        ("ok", str(summary.ok)),
        ("failed", str(summary.failed)),
        *((f"  {escape(cause)}", str(count)) for cause, count in summary.causes.most_common()),
        ("spans per answer", f"{summary.spans_per_answer:.2f}"),
        ("coverage", f"{summary.coverage:.1%}"),
        ("omissions", str(summary.omissions)),
        ("unmatched quotes", str(summary.unmatched)),
    ]
    if summary.set_aside:
        rows.append(("moved aside: other critic or settings", str(summary.set_aside)))
    if summary.tokens_in or summary.tokens_out:
        rows.append(("tokens in, out", f"{summary.tokens_in}, {summary.tokens_out}"))
    if summary.cost:
        rows.append(("cost", f"{summary.cost:.4f}"))
    rows.append(("records a second", f"{summary.rate:.1f}"))
    for row in rows:
        table.add_row(*row)
    return table


def count_lines(path: Path) -> int:
    """How many lines a file has, read in blocks."""
    if not path.is_file():
        raise UserError(f"{path}: no such file; give the path of a JSON lines file with one example a line")
    with open_maybe_gzip(path, "rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))


def parsed_options(options: list[str]) -> dict[str, Any]:
    """`name=value` pairs; a value is read as YAML: 3 is a number, true is a truth value, [a, b] is a list."""
    import yaml

    parsed = {}
    for option in options:
        name, equals, value = option.partition("=")
        if not equals or not name.isidentifier():
            raise UserError(f'--option "{option}" is not of the form name=value')
        parsed[name] = yaml.safe_load(value)
    return parsed
