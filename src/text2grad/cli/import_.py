"""`text2grad import`: feedback that people already have."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Column, Table
from rich.text import Text

from text2grad.cli.console import Console
from text2grad.cli.options import AnswerColumn, Debug, Overwrite, check_output, pairs
from text2grad.data.importing import FEEDBACK_SETS, ImportSummary
from text2grad.errors import UserError
from text2grad.text.printable import printable

if TYPE_CHECKING:
    from text2grad.annotate.import_file import GuessedColumn

_SHOWN = 10  # broken rows, and comments that could not be read, that are printed
_EXCERPT = 60  # characters of a cell


def import_(
    source: Annotated[
        list[str],
        typer.Argument(
            help="A table (CSV, TSV, Parquet, Arrow) or an export of Label Studio, Argilla or doccano; or the name of "
            f"a feedback set and its file, folder or hf:OWNER/NAME. Feedback sets: {', '.join(FEEDBACK_SETS)}."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="JSON lines with the records and their feedback.")],
    column: AnswerColumn = None,
    label: Annotated[
        list[str] | None,
        typer.Option(help="What a label means, as label=good, poor or missing: Fluff=poor; may be repeated."),
    ] = None,
    second: Annotated[
        Path | None, typer.Option(help="The file that the rows refer to: RAGTruth's source_info.jsonl.")
    ] = None,
    align: Annotated[bool, typer.Option(help="Read the critiques of a feedback set as `text2grad align` does.")] = True,
    overwrite: Overwrite = False,
    debug: Debug = False,
) -> None:
    """Turn people's comments, or a public feedback set, into feedback to train on.

    Columns are recognised by their names, and what was recognised is shown. Offsets are checked against the text. A
    row that is broken is left out and named, as is a comment whose words are not found in the answer.

    Example: text2grad import comments.csv -o feedback.jsonl, or text2grad import ragtruth response.jsonl -o
    feedback.jsonl
    """
    from text2grad.annotate.import_file import import_set

    check_output(output, overwrite, [*source, *([second] if second else [])])
    columns, labels = pairs(column, "--column prompt=Frage"), pairs(label, "--label Fluff=poor")
    if len(source) == 2:
        if columns or labels:
            raise UserError(f"--column and --label are for tables and exports; {source[0]} has its own fields")
        summary = import_set(source[0], source[1], output, second, align)
        _print_summary(summary, source[1], output)
    elif len(source) == 1:
        if source[0] in FEEDBACK_SETS:
            raise UserError(
                f"{source[0]}: give its file too, as in text2grad import {source[0]} FILE -o feedback.jsonl"
            )
        if not align:
            raise UserError("--no-align is for feedback sets; the comments of tables and exports are always read")
        summary = import_table(source[0], output, columns, labels)
    else:
        raise UserError("give a file, or the name of a feedback set and its file")
    console, path = Console(soft_wrap=True), escape(str(output))
    console.print(f"Written: {path}")
    if summary.with_feedback:
        console.print(f"Look at it with `text2grad report {path}`; train with `text2grad train --feedback {path}`.")
    else:
        console.print(f"These are prompts: train on them with data.train={path}.")


def import_table(source: str, output: Path, columns: dict[str, str], labels: dict[str, str]) -> ImportSummary:
    """Import a table or an export of a tool, and print what was recognised and what was left out."""
    from text2grad.annotate.import_file import import_comments, show_columns

    if guessed := show_columns(source, columns):
        Console().print(columns_table(guessed))
    summary = import_comments(source, output, columns, labels)
    _print_summary(summary, source, output)
    return summary


def _print_summary(summary: ImportSummary, source: str, output: Path) -> None:
    if not summary.rows:
        raise UserError(f"{source}: there are no rows; {output} is not written")
    console = Console()
    console.print(summary_table(summary))
    _print_named(console, "skipped", summary.skipped, "more rows")
    _print_named(console, "not read", summary.unread, "more comments")
    if not summary.examples:
        raise UserError(f"{source}: no row could be imported; {output} is not written")
    if not summary.is_worth_writing:
        raise UserError(
            f"{source}: none of {summary.with_feedback} completions has feedback that can be used, last: "
            f"{summary.unread[-1] if summary.unread else 'all of it failed'}; {output} is not written: name the words "
            f"of the answer that are meant, or add a column `label` with good or poor"
        )


def columns_table(guessed: list[GuessedColumn]) -> Table:
    """Return which column is taken for what."""
    table = Table("field", "column", "first row", title="Columns; change one with --column field=column")
    for item in guessed:
        excerpt = " ".join(item.example.split())
        shown = excerpt if len(excerpt) <= _EXCERPT else excerpt[: _EXCERPT - 1] + "…"
        table.add_row(item.field, Text(printable(item.column)), Text(printable(shown)))
    return table


def summary_table(summary: ImportSummary) -> Table:
    """Return the counts; optional rows without content are skipped."""
    counts = {
        "rows": summary.rows,
        "skipped rows": len(summary.skipped),
        "completions": summary.examples,
        "spans": summary.spans,
        "omissions": summary.omissions,
    }
    optional = {
        "comments without a position whose words were found": summary.aligned,
        "comments without a position whose words were not found": summary.unaligned,
        "  of these, judged as a whole by their label": summary.judged,
        "quotations that are not in the completion": summary.unmatched,
        "spans with wrong offsets, found by their words": summary.relocated,
    }
    table = Table(Column(), Column(justify="right"), show_header=False)
    for name, count in (counts | {name: count for name, count in optional.items() if count}).items():
        table.add_row(name, str(count))
    return table


def _print_named(console: Console, what: str, sentences: list[str], more: str) -> None:
    for sentence in sentences[:_SHOWN]:
        console.print(f"[yellow]{what}[/yellow] {escape(printable(sentence))}", soft_wrap=True, highlight=False)
    if len(sentences) > _SHOWN:
        console.print(f"[yellow]{what}[/yellow] {len(sentences) - _SHOWN} {more}")
