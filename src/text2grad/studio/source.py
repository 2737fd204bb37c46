"""The answers of a file or a run: whatever `text2grad import` reads, files without comments, and a run's samples."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from text2grad.critics.human.columns import guess_columns
from text2grad.critics.human.critic import read_feedback
from text2grad.critics.human.exports import is_export
from text2grad.data.columns import row_to_example
from text2grad.data.importing import ImportSummary
from text2grad.data.rows import Row, read_rows_of
from text2grad.errors import UserError
from text2grad.files import read_json_lines
from text2grad.report.read import read_evaluation
from text2grad.schema import Example, validate
from text2grad.text.printable import printable

SUFFIXES = (".jsonl", ".json", ".csv", ".tsv", ".parquet")
_SAMPLES, _EVALUATION = "samples.jsonl", "evaluation.json"
_FIELDS = ("prompt", "completion", "reference", "id")


@dataclass(frozen=True)
class Answers:
    """The answers of a source, each once, and the fault of each row that was left out."""

    examples: list[Example]
    skipped: list[str]


def is_run(path: Path) -> bool:
    """Whether a folder is that of a run with samples."""
    return path.is_dir() and ((path / _SAMPLES).is_file() or (path / _EVALUATION).is_file())


def is_source(path: Path) -> bool:
    """Whether the path looks like something that `read_answers` reads."""
    return is_run(path) or (path.is_file() and path.name.removesuffix(".gz").endswith(SUFFIXES))


def record_key(example: Example) -> str:
    """Return what identifies an answer, wherever it stands in the file: a digest of prompt and completion."""
    text = f"{example.prompt_text}\0{example.completion}"
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def read_answers(path: Path, columns: Mapping[str, str] | None = None) -> Answers:
    """Read all answers. Broken rows are left out and named; UserError where no answer is left.

    columns: the columns of fields whose names do not tell, as {"prompt": "Frage"}.
    """
    summary = ImportSummary()
    found = _run_examples(path) if path.is_dir() else _file_examples(path, dict(columns or {}), summary)
    examples: dict[str, Example] = {}
    for example in found:
        if not example.completion:
            summary.skip(example.id, "completion is empty")
            continue
        try:
            example.model_dump_json()
            examples.setdefault(record_key(example), example)
        except ValueError:  # of pydantic, or of the digest
            summary.skip(printable(example.id), "text with an unpaired surrogate")
    if not examples:
        faults = "; ".join(summary.skipped[:3]) or "it has no rows"
        raise UserError(f"{path}: no answers to show ({faults}); give rows with a prompt and a completion")
    return Answers(list(examples.values()), summary.skipped)


def _file_examples(path: Path, columns: dict[str, str], summary: ImportSummary) -> Iterator[Example]:
    first = next((row for row in read_rows_of(path) if row.error is None), None)
    if first is None:
        return _plain_examples(read_rows_of(path), {}, summary)  # to name what is wrong with each row
    if is_export(first.fields):
        return read_feedback(path, columns=columns, summary=summary)
    has_feedback = isinstance(first.fields.get("feedback"), dict)
    if not has_feedback and {"comment", "label"} & guess_columns(first.fields, columns).keys():
        return read_feedback(path, columns=columns, summary=summary)
    return _plain_examples(read_rows_of(path), columns, summary)


def _plain_examples(rows: Iterable[Row], columns: dict[str, str], summary: ImportSummary) -> Iterator[Example]:
    """Rows without comments, or with feedback of the schema."""
    for row in rows:
        try:
            found = guess_columns(row.fields, columns)
            yield row_to_example(row, {name: found[name] for name in _FIELDS if name in found})
        except UserError as error:
            summary.skip(row.where, str(error).removeprefix(f"{row.where}: "))


def _run_examples(folder: Path) -> Iterator[Example]:
    """The held-out answers before and after training, side by side, then the samples of all steps."""
    evaluation = read_evaluation(folder / _EVALUATION)
    for pair in evaluation.examples if evaluation else []:
        for moment, said in (("before", pair.before), ("after", pair.after)):
            fields = {"prompt": pair.prompt, "reference": pair.reference, "meta": {"moment": moment}}
            yield _sample(f"{pair.id} {moment}", fields, said.completion, said.feedback, str(folder))
    samples = folder / _SAMPLES
    for where, record in read_json_lines(samples) if samples.is_file() else ():
        name = f"step {record.get('step')}, sample {record.get('sample')}"
        yield _sample(
            name,
            {"prompt": record.get("prompt"), "reference": record.get("reference")},
            record.get("completion"),
            record.get("feedback"),
            where,
        )


def _sample(name: str, fields: dict[str, Any], completion: Any, feedback: Any, where: str) -> Example:
    known = {key: value for key, value in fields.items() if value is not None}
    given = {} if feedback is None else {"feedback": feedback}
    return validate(Example, {"id": name, **known, "completion": completion, **given}, where)
