"""Feedback that people already have, as a file of Examples: comments in tables and exports, public feedback sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from text2grad.align.comment_aligner import CommentAligner, is_alignable
from text2grad.critics.human.columns import guess_columns, require_columns
from text2grad.critics.human.critic import read_feedback
from text2grad.critics.human.exports import is_export
from text2grad.data.importing import ImportSummary, import_feedback_set
from text2grad.data.rows import Row, read_rows_of
from text2grad.errors import UserError
from text2grad.files import disk_errors, fsync_path
from text2grad.schema import Example, Feedback


@dataclass(frozen=True)
class GuessedColumn:
    """A column of the table, the field that it is taken for, and its content in the first row."""

    field: str
    column: str
    example: str


def show_columns(source: str, columns: Mapping[str, str]) -> list[GuessedColumn]:
    """Return which column is taken for which field, from the first row that can be read; empty for exports of tools.

    Raises UserError where a column is missing that a comment cannot do without.
    """
    first = next((row for row in read_rows_of(source) if row.error is None), None)
    if first is None or not _is_flat(first):
        return []
    found = guess_columns(first.fields, columns)
    try:
        require_columns(found, first.fields)
    except UserError as error:
        raise UserError(f"{source}: {error}") from error
    return [GuessedColumn(name, column, str(first.fields[column] or "")) for name, column in found.items()]


def import_comments(source: str, output: Path, columns: Mapping[str, str], labels: Mapping[str, str]) -> ImportSummary:
    """Write the comments of a table or of an export, see `read_feedback`; broken rows are left out and named."""
    summary = ImportSummary()
    _write(output, read_feedback(source, labels=labels, columns=columns, summary=summary), summary)
    return summary


def import_set(name: str, source: str, output: Path, second: Path | None = None, align: bool = True) -> ImportSummary:
    """Write a public feedback set, see `import_feedback_set`; broken rows are left out and named."""
    summary = ImportSummary()
    examples = import_feedback_set(name, source, summary, second)
    _write(output, _align(examples, summary) if align else examples, summary)
    return summary


def _is_flat(row: Row) -> bool:
    return not is_export(row.fields) and not isinstance(row.fields.get("feedback"), dict)


def _align(examples: Iterable[Example], summary: ImportSummary) -> Iterator[Example]:
    """Find the words that critiques without spans are about."""
    aligner = CommentAligner()
    for example in examples:
        if example.feedback is None or not is_alignable(example.feedback):
            yield example
            continue
        (found,) = aligner.critique([example])
        summary.note_alignment(example.id, found)
        yield example.model_copy(update={"feedback": _keep_score(example.feedback, found)})


def _keep_score(before: Feedback, aligned: Feedback) -> Feedback:
    """Return the aligned feedback; where nothing was found, a score still says something about the whole completion."""
    return before if aligned.status == "failed" and before.score is not None else aligned


def _write(output: Path, examples: Iterable[Example], summary: ImportSummary) -> None:
    """Write all examples, or no file at all where none is of use or the writing fails."""
    partial = output.with_name(f".{output.name}.partial")
    with disk_errors(output):
        output.parent.mkdir(parents=True, exist_ok=True)
        try:
            with partial.open("w", encoding="utf-8") as out:
                for example in examples:
                    out.write(example.model_dump_json(exclude_defaults=True) + "\n")
                    summary.add(example)
            if summary.is_worth_writing:
                fsync_path(partial)
                partial.replace(output)
        finally:
            partial.unlink(missing_ok=True)
