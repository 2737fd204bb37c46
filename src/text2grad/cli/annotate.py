"""`text2grad annotate`: feedback on every record of a file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from text2grad.cli.options import Debug, RetryFailed
from text2grad.cli.progress import progress_bar
from text2grad.errors import UserError
from text2grad.files import open_maybe_gzip

if TYPE_CHECKING:
    from text2grad.annotate import Summary
    from text2grad.critics.base import Critic

_LINE_SECONDS = 10.0  # between progress lines if the output is not a terminal
_LLM = "LLM critics"


def annotate(
    source: Annotated[
        Path, typer.Argument(help="JSON lines with id, prompt and completion; reference, tests and meta are optional.")
    ],
    critic: Annotated[
        str,
        typer.Option(
            help="grounding (summaries), qa (answers to questions), code (runs the tests), lint (ruff), human (a file "
            "of comments), llm (an OpenAI-compatible server), local (a model in this process), reward:PATH (a trained "
            "reward model), or your own class as package.module:Class."
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="JSON lines with the records and their feedback; continued if it exists."),
    ],
    base_url: Annotated[
        str | None,
        typer.Option(help="Server URL, for instance http://localhost:8000/v1. Default: OpenAI.", rich_help_panel=_LLM),
    ] = None,
    llm_model: Annotated[
        str | None,
        typer.Option(
            help="The model on the server; for local: smollm2, a hub name, or a folder.", rich_help_panel=_LLM
        ),
    ] = None,
    api_key_env: Annotated[
        str | None,
        typer.Option(
            help="Environment variable with the API key (OPENAI_API_KEY). The key itself is never an option and never "
            "written to a file.",
            rich_help_panel=_LLM,
        ),
    ] = None,
    task: Annotated[
        str | None, typer.Option(help="Prompt template: general, summarise, code or qa.", rich_help_panel=_LLM)
    ] = None,
    prompt: Annotated[
        Path | None, typer.Option(help="Your own prompt template, in Jinja.", rich_help_panel=_LLM)
    ] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Tokens per reply.", rich_help_panel=_LLM)] = None,
    temperature: Annotated[
        float | None, typer.Option(min=0, help="Sampling temperature (0).", rich_help_panel=_LLM)
    ] = None,
    timeout: Annotated[float | None, typer.Option(min=0.001, help="Seconds per request.", rich_help_panel=_LLM)] = None,
    price_in: Annotated[
        float | None, typer.Option(min=0, help="Price per million prompt tokens.", rich_help_panel=_LLM)
    ] = None,
    price_out: Annotated[
        float | None, typer.Option(min=0, help="Price per million reply tokens.", rich_help_panel=_LLM)
    ] = None,
    max_cost: Annotated[
        float | None,
        typer.Option(
            min=0, help="Stop before this run costs more, in the currency of the prices.", rich_help_panel=_LLM
        ),
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option(min=1, help="Concurrent requests (16), for critics that use a network.")
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="Records per write, and per call of critics that compute locally (32).")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="Any other argument of the critic, as name=value; may be repeated.")
    ] = None,
    unsafe_exec: Annotated[
        bool, typer.Option("--unsafe-exec", help="Let the code critic run programs if no sandbox is available.")
    ] = False,
    retry_failed: RetryFailed = False,
    debug: Debug = False,
) -> None:
    """Have a critic comment on every completion of a file, and find the words that each comment is about.

    An interrupted or killed run continues with the same command and requests nothing twice. Feedback from a critic with
    other settings is not mixed in but moved to NAME.stale.jsonl. If a critique fails, the record is kept with status
    "failed" and the reason.

    Example: text2grad annotate answers.jsonl --critic grounding -o feedback.jsonl
    """
    from text2grad.critics.registry import make_critic

    given = {
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
        given["unsafe"] = True
    options = {name: value for name, value in given.items() if value is not None} | parse_options(option or [])
    annotate_with_progress(source, output, make_critic(critic, options), concurrency, batch_size, retry_failed)


def annotate_with_progress(
    source: Path,
    output: Path,
    critic: Critic,
    concurrency: int | None = None,
    batch_size: int | None = None,
    retry_failed: bool = False,
) -> None:
    """Annotate a file with a progress bar and print a summary, also if it is interrupted or fails."""
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
            display.console.print("Finished records are saved; the same command continues from here.")
            raise typer.Exit(130) from None
        except UserError:
            display.finished(output)
            raise
        display.finished(output)


class AnnotationDisplay:
    """A progress bar with rate, failures, cost and time left, then a summary table."""

    def __init__(self, console: Console, total: int) -> None:
        self.console = console
        self._summary: Summary | None = None
        self._last_line = time.monotonic()
        self._progress = progress_bar(console)
        self._total = total
        self._bar = self._progress.add_task("annotating", total=None, metrics="")

    def __enter__(self) -> AnnotationDisplay:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def update(self, summary: Summary) -> None:
        figures = f"{summary.records_per_second:.1f}/s"
        if summary.failed:
            figures += f"  [yellow]{summary.failed} failed[/yellow]"
        if summary.cost:
            figures += f"  cost {summary.cost:.4f}"
        if self._summary is None:
            # Records of earlier runs must not count for the estimate of the remaining time.
            self._progress.reset(self._bar, total=self._total, completed=summary.records)
        self._summary = summary
        self._progress.update(self._bar, completed=summary.records, metrics=figures)
        if not self.console.is_terminal and time.monotonic() - self._last_line >= _LINE_SECONDS:
            self._last_line = time.monotonic()
            self.console.print(f"{summary.records}/{self._total}  {figures}")

    def finished(self, output: Path) -> None:
        self._progress.stop()
        if self._summary is not None:
            self.console.print(summary_table(self._summary))
            self.console.print(f"Feedback: {escape(str(output))}", soft_wrap=True)


def summary_table(summary: Summary) -> Table:
    """Return the summary as a table; optional rows without content are skipped."""
    table = Table(show_header=False)
    table.add_column()
    table.add_column(justify="right")
    rows: list[tuple[str, str]] = [
        ("records", f"{summary.records} ({summary.added} new)"),
        ("ok", str(summary.ok)),
        ("failed", str(summary.failed)),
        *((f"  {escape(cause)}", str(count)) for cause, count in summary.causes.most_common()),
        ("spans per completion", f"{summary.spans_per_completion:.2f}"),
        ("coverage", f"{summary.coverage:.1%}"),
        ("omissions", str(summary.omissions)),
        ("unmatched quotes", str(summary.unmatched)),
    ]
    if summary.stale:
        rows.append(("moved aside: other critic or settings", str(summary.stale)))
    if summary.tokens_in or summary.tokens_out:
        rows.append(("tokens in, out", f"{summary.tokens_in}, {summary.tokens_out}"))
    if summary.cost:
        rows.append(("cost", f"{summary.cost:.4f}"))
    rows.append(("records per second", f"{summary.records_per_second:.1f}"))
    for row in rows:
        table.add_row(*row)
    return table


def count_lines(path: Path) -> int:
    """Count the lines of a plain or gzipped file."""
    if not path.is_file():
        raise UserError(f"{path}: no such file; give the path of a JSON lines file with one example per line")
    with open_maybe_gzip(path, "rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))


def parse_options(options: list[str]) -> dict[str, Any]:
    """Parse `name=value` pairs; values are YAML: 3 is a number, true a boolean, [a, b] a list."""
    import yaml

    parsed = {}
    for option in options:
        name, equals, value = option.partition("=")
        if not equals or not name.isidentifier():
            raise UserError(f'--option "{option}" is not of the form name=value')
        parsed[name] = yaml.safe_load(value)
    return parsed
