"""People as critics: their comments from CSV, JSON lines, Label Studio and Argilla, with or without offsets."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from text2grad.align.comment_aligner import CommentAligner
from text2grad.critics.combined import merge_feedback
from text2grad.critics.human.exports import Commented, Fields, argilla, is_argilla, is_label_studio, label_studio
from text2grad.critics.human.remarks import Labels, Remark, feedback_of
from text2grad.errors import UserError
from text2grad.schema import Example, Feedback, describe, parse_example

_PLACED = ("comment", "start", "end", "quote", "label", "severity", "annotator")
_DELIMITERS = {".tsv": "\t"}


def read_feedback(
    path: str | Path,
    *,
    labels: Mapping[str, str] | None = None,
    prompt: str | None = None,
    completion: str | None = None,
    comment: str | None = None,
) -> Iterator[Example]:
    """The answers that people commented on, each once, in the order of the file, with all that was said about it.

    - `.csv`, `.tsv`: columns prompt, completion, comment and, where there are any, start, end, quote, label, severity,
      id, annotator; other columns go to `meta`.
    - `.jsonl`: records of the schema, or with a field `comment` and the same optional ones as above.
    - `.json`, or the same as lines: exports of Label Studio (tasks with annotations) and Argilla (records with
      responses). Choices that are good or poor become the score; other choices and ratings go to `meta`.

    A comment with offsets points there, one with a quote at the quote, others at what they quote or name. A comment
    that is found nowhere has no spans yet: `text2grad align` looks further.
    labels: what labels mean where their name does not tell, as {"Fluff": "poor"}: good, poor or missing.
    prompt, completion, comment: the names of these columns or fields, where they are not the usual ones.
    """
    path = Path(path)
    if not path.is_file():
        raise UserError(f"{path}: no such file; give a CSV, JSON or JSON lines file with people's comments")
    fields = Fields(prompt, completion, comment)
    meanings = Labels(labels)
    if path.suffix in (".csv", ".tsv"):
        examples = _from_table(path, fields, meanings)
    else:
        examples = (_from_record(*record, fields, meanings) for record in _records(path))
    yield from _together(examples)


class HumanCritic:
    """Serves people's comments for the answers that they are about, found by prompt and completion.

    The arguments are those of `read_feedback`. An answer that nobody commented on is failed feedback, and so is one
    whose comments are about no part of it that could be found, also by `align.learned`.
    """

    name = "human"

    def __init__(
        self,
        path: str | Path,
        *,
        labels: Mapping[str, str] | None = None,
        prompt: str | None = None,
        completion: str | None = None,
        comment: str | None = None,
    ) -> None:
        self.path = Path(path)
        options = {"labels": labels, "prompt": prompt, "completion": completion, "comment": comment}
        examples = read_feedback(path, labels=labels, prompt=prompt, completion=completion, comment=comment)
        self._said = {_key(example): example for example in examples}
        content = hashlib.blake2b(self.path.read_bytes(), digest_size=16).hexdigest()
        self._fingerprint = json.dumps(["human", content, options], sort_keys=True)

    def fingerprint(self) -> str:
        """Changes with the file and with how it is read."""
        return self._fingerprint

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        """One Feedback for each example, in order."""
        return [self._critique(example) for example in examples]

    def _critique(self, example: Example) -> Feedback:
        said = self._said.get(_key(example))
        if said is None:
            return Feedback.failure(self.name, f"{example.id}: nobody commented on this answer in {self.path}")
        (aligned,) = CommentAligner().critique([said])
        return aligned


def _key(example: Example) -> tuple[str, str]:
    return example.prompt_text.strip(), example.completion


def _together(examples: Iterable[Example]) -> Iterator[Example]:
    """Examples of the same prompt and completion become one, with all feedback."""
    alike: dict[tuple[str, str], list[Example]] = {}
    for example in examples:
        alike.setdefault(_key(example), []).append(example)
    for group in alike.values():
        meta = {name: value for example in reversed(group) for name, value in example.meta.items()}
        said = [example.feedback for example in group if example.feedback is not None]
        yield group[0].model_copy(update={"feedback": merge_feedback(said) if said else None, "meta": meta})


def _from_table(path: Path, fields: Fields, labels: Labels) -> Iterator[Example]:
    columns = (fields.prompt or "prompt", fields.completion or "completion", fields.comment or "comment")
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = file.readline()
            file.seek(0)
            rows = csv.DictReader(file, delimiter=_delimiter(path, header), strict=True)
            for column in columns:
                if column not in (rows.fieldnames or ()):
                    there = ", ".join(rows.fieldnames or ())
                    raise UserError(f"{path}: no column {column}; there are {there}")
            for row in rows:
                where = f"{path}:{rows.line_num}"
                if None in row or None in row.values():
                    raise UserError(
                        f"{where}: the row has more or fewer cells than the header; quote cells with commas"
                    )
                yield _plain_record(row, where, fields, labels, f"{path.stem}-{rows.line_num}")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 ({error}); save it as CSV UTF-8") from error
    except csv.Error as error:
        raise UserError(f"{path}:{rows.line_num}: not valid CSV ({error})") from error


def _delimiter(path: Path, header: str) -> str:
    """Spreadsheets of some countries write semicolons."""
    return _DELIMITERS.get(path.suffix) or max(",;\t", key=header.count)


def _records(path: Path) -> Iterator[tuple[dict[str, Any], str, str]]:
    """The JSON objects of a file, an array or lines, each with the place that errors name, and a name of its own."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 ({error})") from error
    if path.suffix == ".json":
        items = [(item, f"{path}: record {n}", n) for n, item in enumerate(_array(_parsed(text, str(path))), 1)]
    else:
        lines = [(line, f"{path}:{n}", n) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
        items = [(_parsed(line, where), where, n) for line, where, n in lines]
    for item, where, number in items:
        if not isinstance(item, dict):
            raise UserError(f"{where}: not a JSON object")
        yield item, where, f"{path.stem}-{number}"


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise UserError(f"{where}: not valid JSON ({error})") from error


def _array(content: Any) -> list[Any]:
    """One record alone, a list of them, or the list under "records"."""
    if isinstance(content, dict):
        content = content.get("records", [content])
    return content if isinstance(content, list) else [content]


def _from_record(record: dict[str, Any], where: str, name: str, fields: Fields, labels: Labels) -> Example:
    if is_label_studio(record):
        return _from_export(label_studio(record, fields, labels, where), where, labels, name)
    if is_argilla(record):
        return _from_export(argilla(record, fields, labels, where), where, labels, name)
    if "feedback" in record:
        return parse_example(json.dumps({"id": name, **record}), where)
    return _plain_record(record, where, fields, labels, name)


def _plain_record(record: Mapping[str, Any], where: str, fields: Fields, labels: Labels, name: str) -> Example:
    """A flat record: the answer's own fields, and those of one remark about it."""
    renamed = {fields.prompt: "prompt", fields.completion: "completion", fields.comment: "comment"}
    flat = {renamed.get(key, key): value for key, value in record.items() if value not in (None, "")}
    remark = Remark(
        comment=_text(flat, "comment", where) or "",
        start=_whole(flat, "start", where),
        end=_whole(flat, "end", where),
        quote=_text(flat, "quote", where),
        label=_text(flat, "label", where),
        severity=_severity(flat, where),
        annotator=_text(flat, "annotator", where),
    )
    if not remark.comment and remark.label is None:
        raise UserError(f"{where}: comment is empty, and so is label; there is nothing to learn from")
    example = _example({"id": name, **{key: value for key, value in flat.items() if key not in _PLACED}}, where)
    return example.model_copy(update={"feedback": feedback_of(remark, example.completion, labels, where)})


def _from_export(said: Commented, where: str, labels: Labels, name: str) -> Example:
    example = _example(
        {"id": said.id or name, "prompt": said.prompt, "completion": said.completion, **said.meta}, where
    )
    feedbacks = [feedback_of(remark, said.completion, labels, where) for remark in said.remarks]
    for annotator, label in said.overall:
        score = 1.0 if labels.verdict(label, where) == "good" else -1.0
        feedbacks.append(Feedback(critic=f"human:{annotator}" if annotator else "human", score=score))
    return example.model_copy(update={"feedback": merge_feedback(feedbacks) if feedbacks else None})


def _example(record: dict[str, Any], where: str) -> Example:
    if "completion" not in record:
        raise UserError(f"{where}: completion is missing or empty")
    try:
        return Example.model_validate(record | {"id": str(record["id"])})
    except ValidationError as error:
        raise UserError(f"{where}: {describe(error)}") from error


def _text(record: Mapping[str, Any], field: str, where: str) -> str | None:
    value = record.get(field)
    if value is not None and not isinstance(value, str | int):
        raise UserError(f"{where}: {field} is not a text")
    return None if value is None else str(value)


def _whole(record: Mapping[str, Any], field: str, where: str) -> int | None:
    value = record.get(field)
    if value is None:
        return None
    if isinstance(value, bool) or not str(value).strip().isdigit():
        raise UserError(f'{where}: {field} is "{value}", not a whole number from 0')
    return int(value)


def _severity(record: Mapping[str, Any], where: str) -> float:
    value = record.get("severity", 1.0)
    try:
        severity = float(value)
    except (TypeError, ValueError) as error:
        raise UserError(f'{where}: severity is "{value}", not a number') from error
    if not 0 < severity <= 1:
        raise UserError(f"{where}: severity is {value}; give a number above 0, at most 1")
    return severity
