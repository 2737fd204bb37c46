"""The human critic: comments by people from CSV, JSON lines, Label Studio, Argilla and doccano files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from text2grad.align.comment_aligner import CommentAligner
from text2grad.critics.combined import merge_feedback
from text2grad.critics.human.columns import apply_columns, guess_columns, require_columns
from text2grad.critics.human.comment_feedback import (
    HumanComment,
    LabelMeanings,
    comment_to_feedback,
    describe_unmatched,
    whole_score,
)
from text2grad.critics.human.exports import AnnotatedCompletion, FieldNames, parse_export
from text2grad.data.importing import ImportSummary
from text2grad.data.messages import is_conversation, parse_messages
from text2grad.data.rows import Row, read_rows_of
from text2grad.errors import UserError
from text2grad.schema import Example, Feedback, describe

_COMMENT_FIELDS = ("comment", "start", "end", "quote", "label", "severity", "annotator", "replacement")


def read_feedback(
    path: str | Path,
    *,
    labels: Mapping[str, str] | None = None,
    columns: Mapping[str, str] | None = None,
    summary: ImportSummary | None = None,
) -> Iterator[Example]:
    """Yield the completions of a file once each, in order, with all comments on it merged.

    - `.csv`, `.tsv`, `.parquet` and the other tables of `read_rows_of`: columns for prompt, completion, comment and
      optionally label, start, end, quote, severity, id, annotator, replacement (what should stand there instead;
      `[delete]`: nothing); other columns go to `meta`.
    - `.jsonl`, `.json`: records of the schema, or with fields as above, where a replacement that is empty deletes; or
      exports of Label Studio (tasks with annotations), Argilla (records with responses) and doccano (texts with
      labelled spans). Choices that mean good or poor become the score; other choices and ratings go to `meta`. A text
      of the name `replacement` is that of its region (Label Studio), or of the annotator's only span (Argilla).

    A label alone is a verdict on the whole: the score, 1 or -1 times the severity. A comment with offsets refers to
    them, one with a quote to the quote; others are read (`align.reading`). One that has no effect on the completion
    leaves the verdict to its label; without a label it is failed feedback that keeps its text, as is one whose quote is
    not found. A prompt may be a conversation in chat format, in a table as JSON; one without a completion ends with it.
    labels: meanings of unknown labels, as {"Fluff": "poor"}: good, poor or missing.
    columns: the columns of fields whose names `guess_columns` does not know, as {"prompt": "Frage"}.
    summary: where broken records are noted, which are left out then; None: they are errors.
    """
    reader = _Reader(LabelMeanings(labels), dict(columns or {}), summary)
    yield from _merge_examples(reader.read(path))


class HumanCritic:
    """Returns the comments in a file on each completion, which is found by prompt and completion.

    The arguments are those of `read_feedback`. A completion without comments, or whose comments fit no part of it, gets
    failed feedback.
    """

    name = "human"

    def __init__(
        self,
        path: str | Path,
        *,
        labels: Mapping[str, str] | None = None,
        columns: Mapping[str, str] | None = None,
    ) -> None:
        self.path = Path(path)
        options: dict[str, Any] = {"labels": labels, "columns": columns}
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
        if commented is None or commented.feedback is None:
            return Feedback.failure(self.name, f"{self.path} has no comment on this completion")
        if commented.feedback.score is not None or commented.feedback.omissions:
            return commented.feedback
        (aligned,) = CommentAligner().critique([commented])  # a record of the schema may have a critique only
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
        yield group[0].model_copy(update={"feedback": _merge_comments(feedback) if feedback else None, "meta": meta})


def _merge_comments(feedbacks: Sequence[Feedback]) -> Feedback:
    """Merge what was said about one completion; of a comment whose words were not found, text and reason are kept.

    It is a failure only where no comment's words were found.
    """
    failed = [feedback for feedback in feedbacks if feedback.status == "failed"]
    texts = [feedback.model_copy(update={"status": "ok", "error": None}) for feedback in feedbacks]
    merged = merge_feedback(texts)
    errors = "; ".join(dict.fromkeys(feedback.error for feedback in feedbacks if feedback.error))
    status = "failed" if len(failed) == len(feedbacks) else "ok"
    return merged.model_copy(update={"status": status, "error": errors or None})


class _Reader:
    """Converts the records of a file; the arguments are those of `read_feedback`."""

    def __init__(
        self,
        labels: LabelMeanings,
        columns: dict[str, str],
        summary: ImportSummary | None,
    ) -> None:
        self.labels, self.columns, self.summary = labels, columns, summary
        self.field_names = FieldNames(*map(columns.get, FieldNames._fields))

    def read(self, path: str | Path) -> Iterator[Example]:
        """Yield one example per record."""
        for row in read_rows_of(path):
            if self.summary is not None:
                self.summary.rows += 1
            try:
                yield self._parse(row)
            except UserError as error:
                if self.summary is None:
                    raise UserError(f"{row.where}: {error}") from error
                self.summary.skip(row.where, str(error))

    def _parse(self, row: Row) -> Example:
        if row.error is not None:
            raise UserError(row.error)
        try:
            exported = parse_export(row.fields, self.field_names, self.labels)
            if exported is not None:
                return self._from_export(exported, row)
            if isinstance(row.fields.get("feedback"), dict):
                return Example.model_validate({"id": row.name, **row.fields})
            found = guess_columns(row.fields, self.columns)
            require_columns(found, row.fields)
            return self._from_flat(apply_columns(row.fields, found), row)
        except ValidationError as error:
            raise UserError(describe(error)) from error
        except (ValueError, RecursionError) as error:  # the latter of JSON in a cell, nested too deeply
            raise UserError(str(error)) from error

    def _from_flat(self, flat: dict[str, Any], row: Row) -> Example:
        """Parse a record with the fields of an example and of one comment on it."""
        comment = HumanComment.model_validate({key: flat.pop(key) for key in _COMMENT_FIELDS if key in flat})
        if not comment.comment and comment.label is None and comment.replacement is None:
            raise UserError("comment is empty, and so are label and replacement; give one of them")
        example = _make_example(flat, row.name)
        return example.model_copy(update={"feedback": self._feedback(comment, example, row.where)})

    def _from_export(self, parsed: AnnotatedCompletion, row: Row) -> Example:
        example = _make_example(parsed.fields | parsed.meta, row.name)
        feedbacks = [self._feedback(comment, example, row.where) for comment in parsed.comments]
        for annotator, label in parsed.ratings:
            score = 1.0 if self.labels.resolve(label) == "good" else -1.0
            feedbacks.append(Feedback(critic=HumanComment(annotator=annotator).critic, score=score))
        return example.model_copy(update={"feedback": _merge_comments(feedbacks) if feedbacks else None})

    def _feedback(self, comment: HumanComment, example: Example, where: str) -> Feedback:
        meaning = self.labels.resolve(comment.label)
        is_placed = comment.start is not None or comment.end is not None or bool(comment.quote)
        has_more = is_placed or meaning == "missing" or comment.replacement is not None
        text = comment.comment.strip()
        if meaning is not None and not text and not has_more:  # a verdict on the whole
            return Feedback(critic=comment.critic, score=whole_score(meaning, comment.severity))
        feedback = comment_to_feedback(comment, example.completion, self.labels, example.prompt_text)
        if self.summary is not None:
            _note(self.summary, where, comment, feedback, is_read=bool(text) and not is_placed and meaning != "missing")
        return feedback


def _note(summary: ImportSummary, where: str, comment: HumanComment, feedback: Feedback, is_read: bool) -> None:
    """Note what became of a comment. is_read: whether it has a text, and no position but what the text says."""
    if is_read:
        summary.note_alignment(where, feedback, judged_by=comment.label)
    elif feedback.status == "failed":
        summary.unread.append(f"{where}: {describe_unmatched(comment.quote or '')}")


def _make_example(record: dict[str, Any], default_id: str) -> Example:
    record = record | _conversation(record)
    if "completion" not in record:
        raise UserError("completion is missing or empty")
    record_id = record.get("id")
    return Example.model_validate(record | {"id": default_id if record_id is None else str(record_id)})


def _conversation(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the prompt in chat format, and the completion where the conversation ends with it."""
    prompt = record.get("prompt")
    if isinstance(prompt, str) and prompt.lstrip().startswith("[{"):
        try:
            prompt = json.loads(prompt)
        except ValueError:
            return {}  # a text that starts like that
    if not is_conversation(prompt):
        return {}
    messages = parse_messages(prompt)
    if "completion" not in record and len(messages) > 1 and messages[-1]["role"] == "assistant":
        return {"prompt": messages[:-1], "completion": messages[-1]["content"]}
    return {"prompt": messages}
