"""`text2grad annotate`: feedback on every record of a file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Column, Table

from text2grad.cli.console import Console
from text2grad.cli.options import Debug, FeedbackFile, RetryFailed, UnsafeCritic, given
from text2grad.cli.progress import LINE_SECONDS, ProgressDisplay
from text2grad.errors import UserError
from text2grad.files import open_maybe_gzip
from text2grad.schema import check_examples_file
from text2grad.text.printable import printable

if TYPE_CHECKING:
    from text2grad.annotate import Summary
    from text2grad.critics.base import Critic

_CRITICS = (
    "grounding (summaries), qa (answers to questions), code (runs the tests), lint (ruff), human (a file of comments), "
    "llm (an OpenAI-compatible server), local (a model in this process), reward:PATH (a trained reward model), or your "
    "own class as package.module:Class."
)
KEY_HELP = (
    "Environment variable with the API key (OPENAI_API_KEY). The key itself is never an option and never written to a "
    "file."
)


def llm_option(text: str, **limits: Any) -> Any:
    """Return an option of commands that can use a model on a server."""
    return typer.Option(help=text, rich_help_panel="Language models on a server", **limits)


def annotate(
    source: Annotated[
        Path, typer.Argument(help="JSON lines with id, prompt and completion; reference, tests and meta are optional.")
    ],
    critic: Annotated[str, typer.Option(help=_CRITICS)],
    output: FeedbackFile,
    base_url: Annotated[
        str | None, llm_option("Server URL, for instance http://localhost:8000/v1. Default: OpenAI.")
    ] = None,
    llm_model: Annotated[
        str | None, llm_option("The model on the server; for local: smollm2, a hub name, or a folder.")
    ] = None,
    api_key_env: Annotated[str | None, llm_option(KEY_HELP)] = None,
    task: Annotated[str | None, llm_option("Prompt template: general, summarise, code or qa.")] = None,
    prompt: Annotated[Path | None, llm_option("Your own prompt template, in Jinja.")] = None,
    max_tokens: Annotated[int | None, llm_option("Tokens per reply.", min=1)] = None,
    temperature: Annotated[float | None, llm_option("Sampling temperature (0).", min=0)] = None,
    timeout: Annotated[float | None, llm_option("Seconds per request.", min=0.001)] = None,
    price_in: Annotated[float | None, llm_option("Price per million prompt tokens.", min=0)] = None,
    price_out: Annotated[float | None, llm_option("Price per million reply tokens.", min=0)] = None,
    max_cost: Annotated[
        float | None, llm_option("Stop before this run costs more, in the currency of the prices.", min=0)
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
    unsafe_exec: UnsafeCritic = False,
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

    check_examples_file(source)
    endpoint = {"base_url": base_url, "model": llm_model, "api_key_env": api_key_env, "timeout": timeout}
    generation = {"task": task, "prompt": prompt, "max_tokens": max_tokens, "temperature": temperature}
    budget = {"price_in": price_in, "price_out": price_out, "max_cost": max_cost}
    arguments = given(endpoint | generation | budget | {"unsafe": unsafe_exec or None}, option)
    options: dict[str, Any] = {"concurrency": concurrency, "batch_size": batch_size, "retry_failed": retry_failed}
    annotate_with_progress(source, output, make_critic(critic, arguments), **options)


def annotate_with_progress(source: Path, output: Path, critic: Critic, **options: Any) -> None:
    """Annotate a file with a progress bar and print a summary, also if it is interrupted or fails.

    options: of `text2grad.annotate.annotate`. Raises UserError where there is no record, or all feedback failed.
    """
    from text2grad.annotate import annotate as run

    display = AnnotationDisplay(Console(), source, output)
    try:
        with display:
            summary = run(source, output, critic, on_progress=display.update, **options)
    except KeyboardInterrupt:
        display.console.print("Finished records are saved; the same command continues from here.")
        raise typer.Exit(130) from None
    if not summary.records:
        raise UserError(f"{source}: no records; give a JSON lines file with one example per line")
    if not summary.ok:
        raise UserError(
            f"all feedback on {source} failed, last: {summary.error}; fix the cause and repeat the command with "
            f"--retry-failed"
        )


class AnnotationDisplay(ProgressDisplay):
    """A progress bar with rate, failures, cost and time left, then a summary table."""

    def __init__(self, console: Console, source: Path, output: Path) -> None:
        super().__init__(console, "annotating")
        self._num_records = count_lines(source)
        self._output = output
        self._summary: Summary | None = None
        self._last_line = time.monotonic()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        if self._summary is not None and self._summary.records:
            self.console.print(summary_table(self._summary))
            self.console.print(f"Feedback: {escape(str(self._output))}", soft_wrap=True)

    def update(self, summary: Summary) -> None:
        """Update the bar; where there is no terminal, print a line now and then."""
        metrics = f"{summary.records_per_second:.1f}/s"
        if summary.failed:
            metrics += f"  [yellow]{summary.failed} failed[/yellow]"
        if summary.cost:
            metrics += f"  cost {summary.cost:.4f}"
        if self._summary is None:
            # Records of earlier runs must not count for the estimate of the remaining time.
            self.progress.reset(self.task, total=self._num_records, completed=summary.records)
        self._summary = summary
        self.progress.update(self.task, completed=summary.records, metrics=metrics)
        if not self.console.is_terminal and time.monotonic() - self._last_line >= LINE_SECONDS:
            self._last_line = time.monotonic()
            self.console.print(f"{summary.records}/{self._num_records}  {metrics}")


def summary_table(summary: Summary) -> Table:
    """Return the summary as a table; optional rows without content are skipped."""
    table = Table(Column(), Column(justify="right"), show_header=False)
    rows: list[tuple[str, str]] = [
        ("records", f"{summary.records} ({summary.added} new)"),
        ("ok", str(summary.ok)),
        ("failed", str(summary.failed)),
        *((f"  {escape(printable(cause))}", str(count)) for cause, count in summary.causes.most_common()),
        ("spans per completion", f"{summary.spans_per_completion:.2f}"),
        ("coverage", f"{summary.coverage:.1%}"),
        ("mean confidence of spans", "–" if summary.confidence is None else f"{summary.confidence:.2f}"),
        ("omissions", str(summary.omissions)),
        ("unmatched quotes", str(summary.unmatched)),
    ]
    if summary.repeated:
        rows.append(("repeated in the source, annotated once", str(summary.repeated)))
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
    check_examples_file(path)
    with open_maybe_gzip(path, "rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
