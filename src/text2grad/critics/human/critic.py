"""The human critic: comments by people from CSV, JSON lines, Label Studio and Argilla files."""

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
from text2grad.critics.human.comment_feedback import HumanComment, LabelMeanings, comment_to_feedback
from text2grad.critics.human.exports import AnnotatedCompletion, FieldNames, parse_export, to_list
from text2grad.errors import UserError
from text2grad.schema import Example, Feedback, describe

_COMMENT_FIELDS = ("comment", "start", "end", "quote", "label", "severity", "annotator", "replacement")


def read_feedback(
    path: str | Path,
    *,
    labels: Mapping[str, str] | None = None,
    prompt: str | None = None,
    completion: str | None = None,
    comment: str | None = None,
) -> Iterator[Example]:
    """Yield the completions of a file once each, in order, with all comments on it merged.

    - `.csv`, `.tsv`: columns prompt, completion, comment and optionally start, end, quote, label, severity, id,
      annotator, replacement (what should stand there instead; `[delete]`: nothing); other columns go to `meta`.
    - `.jsonl`: records of the schema, or with a field `comment` and the same optional ones as above; a replacement
      that is empty deletes.
    - `.json`, or the same as lines: exports of Label Studio (tasks with annotations) and Argilla (records with
      responses). Choices that mean good or poor become the score; other choices and ratings go to `meta`. A text of
      the name `replacement` is that of its region (Label Studio), or of the annotator's only span (Argilla).

    A comment with offsets refers to them, one with a quote to the quote, others to what they quote or name. A comment
    that matches no part of the completion has no spans; `text2grad align` uses the learned aligner for it.
    labels: meanings of unknown labels, as {"Fluff": "poor"}: good, poor or missing.
    prompt, completion, comment: the names of these columns or fields, where they are not the usual ones.
    """
    path = Path(path)
    if not path.is_file():
        raise UserError(f"{path}: no such file; give a CSV, JSON or JSON lines file with people's comments")
    fields = FieldNames(prompt, completion, comment)
    meanings = LabelMeanings(labels)
    records = _read_table(path, fields) if path.suffix in (".csv", ".tsv") else _read_json(path)
    yield from _merge_examples(_parse_record(*record, fields, meanings) for record in records)


class HumanCritic:
    """Returns the comments in a file on each completion, which is found by prompt and completion.

    The arguments are those of `read_feedback`. A completion without comments, or whose comments match no part of it
    even with the learned aligner, gets failed feedback.
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
        options: dict[str, Any] = {"labels": labels, "prompt": prompt, "completion": completion, "comment": comment}
        self._examples = {_key(example): example for example in read_feedback(path, **options)}
        content = hashlib.blake2b(self.path.read_bytes(), digest_size=16).hexdigest()
        self._fingerprint = json.dumps(["human", content, options], sort_keys=True)

    def fingerprint(self) -> str:
        """Return a string that changes with the file and the arguments."""
        return self._fingerprint

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        """Return one Feedback per example, in order."""
        return [self._critique(example) for example in examples]

    def _critique(self, example: Example) -> Feedback:
        commented = self._examples.get(_key(example))
        if commented is None:
            return Feedback.failure(self.name, f"{example.id}: {self.path} has no comment on this completion")
        (aligned,) = CommentAligner().critique([commented])
        return aligned


def _key(example: Example) -> tuple[str, str]:
    return example.prompt_text.strip(), example.completion


def _merge_examples(examples: Iterable[Example]) -> Iterator[Example]:
    """Merge the examples of the same prompt and completion."""
    groups: dict[tuple[str, str], list[Example]] = {}
    for example in examples:
        groups.setdefault(_key(example), []).append(example)
    for group in groups.values():
        meta = {name: value for example in reversed(group) for name, value in example.meta.items()}
        feedback = [example.feedback for example in group if example.feedback is not None]
        yield group[0].model_copy(update={"feedback": merge_feedback(feedback) if feedback else None, "meta": meta})


def _read_table(path: Path, fields: FieldNames) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Yield the rows of a CSV file with their position for errors and a default id."""
    columns = (fields.prompt or "prompt", fields.completion or "completion", fields.comment or "comment")
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = file.readline()
            file.seek(0)
            # spreadsheets of some countries write semicolons
            delimiter = "\t" if path.suffix == ".tsv" else max(",;\t", key=header.count)
            rows = csv.DictReader(file, delimiter=delimiter, strict=True)
            there = rows.fieldnames or ()
            for column in columns:
                if column not in there:
                    raise UserError(f"{path}: no column {column}; there are {', '.join(there)}")
            for row in rows:
                where = f"{path}:{rows.line_num}"
                if None in row or None in row.values():
                    raise UserError(
                        f"{where}: the row has more or fewer cells than the header; quote cells with commas"
                    )
                said = {column: cell for column, cell in row.items() if cell}
                yield said, where, f"{path.stem}-{rows.line_num}"
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 ({error}); save it as CSV UTF-8") from error
    except csv.Error as error:
        raise UserError(f"{path}:{rows.line_num}: not valid CSV ({error})") from error


def _read_json(path: Path) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Yield the JSON objects of a file, an array or lines, with their position for errors and a default id."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 ({error})") from error
    if path.suffix == ".json":
        content = _parse_json(text, str(path))
        records = content.get("records", content) if isinstance(content, dict) else content
        items = [(item, f"{path}: record {n}", n) for n, item in enumerate(to_list(records), 1)]
    else:
        lines = [(line, f"{path}:{n}", n) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
        items = [(_parse_json(line, where), where, n) for line, where, n in lines]
    for item, where, number in items:
        if not isinstance(item, dict):
            raise UserError(f"{where}: not a JSON object")
        yield item, where, f"{path.stem}-{number}"


def _parse_json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise UserError(f"{where}: not valid JSON ({error})") from error


def _parse_record(
    record: dict[str, Any], where: str, default_id: str, fields: FieldNames, labels: LabelMeanings
) -> Example:
    try:
        exported = parse_export(record, fields, labels)
        if exported is not None:
            return _from_export(exported, labels, default_id)
        if "feedback" in record:
            return Example.model_validate({"id": default_id, **record})
        return _parse_flat_record(record, fields, labels, default_id)
    except ValidationError as error:
        raise UserError(f"{where}: {describe(error)}") from error
    except UserError as error:
        raise UserError(f"{where}: {error}") from error


def _parse_flat_record(
    record: Mapping[str, Any], fields: FieldNames, labels: LabelMeanings, default_id: str
) -> Example:
    """Parse a record with the fields of an example and of one comment on it."""
    renamed = {fields.prompt: "prompt", fields.completion: "completion", fields.comment: "comment"}
    named = {renamed.get(key, key): value for key, value in record.items()}
    flat = {
        key: value for key, value in named.items() if value not in (None, "") or (key, value) == ("replacement", "")
    }
    comment = HumanComment.model_validate({key: flat.pop(key) for key in _COMMENT_FIELDS if key in flat})
    if not comment.comment and comment.label is None and comment.replacement is None:
        raise UserError("comment is empty, and so are label and replacement; give one of them")
    example = _make_example(flat, default_id)
    return example.model_copy(update={"feedback": comment_to_feedback(comment, example.completion, labels)})


def _from_export(parsed: AnnotatedCompletion, labels: LabelMeanings, default_id: str) -> Example:
    example = _make_example(parsed.fields | parsed.meta, default_id)
    feedbacks = [comment_to_feedback(comment, parsed.fields["completion"], labels) for comment in parsed.comments]
    for annotator, label in parsed.ratings:
        score = 1.0 if labels.resolve(label) == "good" else -1.0
        feedbacks.append(Feedback(critic=HumanComment(annotator=annotator).critic, score=score))
    return example.model_copy(update={"feedback": merge_feedback(feedbacks) if feedbacks else None})


def _make_example(record: dict[str, Any], default_id: str) -> Example:
    if "completion" not in record:
        raise UserError("completion is missing or empty")
    record_id = record.get("id")
    return Example.model_validate(record | {"id": default_id if record_id is None else str(record_id)})
