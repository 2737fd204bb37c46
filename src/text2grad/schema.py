"""The data model of all stages: Example, Feedback, Span. On disk: JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from text2grad.errors import UserError
from text2grad.files import open_maybe_gzip

if TYPE_CHECKING:
    from datasets import Dataset

Range = tuple[int, int]
LARGEST_SCORE = 3e38  # within float32, in which rewards are computed
Label = Literal["good", "poor"]
MatchKind = Literal["offset", "exact", "normalized", "fuzzy", "part", "code", "freeform", "whole"]
Severity = Annotated[float, Field(gt=0, le=1)]
Model = TypeVar("Model", bound=BaseModel)
_TABLES = (".csv", ".tsv", ".xlsx", ".xls", ".ods", ".parquet", ".arrow")


class Strict(BaseModel):
    """Base model that rejects unknown fields."""

    model_config = ConfigDict(extra="forbid")


class Message(Strict):
    """One message of a conversation, in the format of chat templates.

    role: who speaks.
    content: the text.
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str


class Span(Strict):
    """A part of the completion that the feedback praises or blames.

    start, end: offsets in code points of the completion, `end` exclusive.
    label: praised or blamed.
    severity: how much it matters.
    phrase: offsets, in the critique, of the words that are about this part.
    reason: what is good or poor about it.
    critic: who said so; by default the critic of the feedback.
    match: how the part was found; `offset`: the critic gave its place.
    confidence: how certain place and label are.
    replacement: what should stand there instead, "" nothing at all; None where the feedback does not say.
    """

    start: Annotated[int, Field(ge=0)]
    end: int
    label: Label
    severity: Severity = 1.0
    phrase: Range | None = None
    reason: str | None = None
    critic: str = ""
    match: MatchKind = "offset"
    confidence: Annotated[float, Field(ge=0, le=1)] = 1.0
    replacement: str | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.end <= self.start:
            raise ValueError(f"end is {self.end} but start is {self.start}: a span holds at least one character")
        if self.replacement is not None and self.label == "good":
            raise ValueError('replacement is given but label is "good": only blamed words are replaced')
        return self


class Omission(Strict):
    """Something that is missing in the completion: charged to the token that came in its place, else to the end token.

    text: what is missing.
    severity: how much it matters.
    phrase: offsets, in the critique, of the words that say so.
    confidence: the probability that the critique says so; weighs as that of spans.
    insert_at: the offset of the completion before which `insertion` belongs. The end is no default where the place is
        unknown.
    insertion: the missing words, spaces included, where they and their place are known.
    """

    text: str
    severity: Severity = 1.0
    phrase: Range | None = None
    confidence: Annotated[float, Field(ge=0, le=1)] = 1.0
    insert_at: Annotated[int, Field(ge=0)] | None = None
    insertion: Annotated[str, Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.insert_at is None) != (self.insertion is None):
            given, other = ("insertion", "insert_at") if self.insert_at is None else ("insert_at", "insertion")
            raise ValueError(f"{given} is given without {other}: give both or neither")
        return self


class Feedback(Strict):
    """The feedback of one critic on one completion. Failed feedback has an error and no effect on training.

    reasoning: what the critic thought before it wrote; not used.
    critique: the comment in sentences.
    spans: the parts of the completion that are praised or blamed.
    omissions: what is missing.
    unmatched: quotations of the critique that are not in the completion.
    scores: (start, end, score) of single words, as a reward model gives them.
    score: of the whole completion; the token rewards add up to it.
    distance: how unlike its training data a trained critic finds the completion, in standard deviations.
    critic: who gave the feedback.
    raw: the reply of a language model that could not be parsed.
    status: whether the feedback can be used.
    error: why it failed.
    """

    reasoning: str | None = None
    critique: str = ""
    spans: list[Span] = []
    omissions: list[Omission] = []
    unmatched: list[str] = []
    scores: list[tuple[int, int, Annotated[float, Field(ge=-1, le=1)]]] | None = None
    score: Annotated[float, Field(allow_inf_nan=False, ge=-LARGEST_SCORE, le=LARGEST_SCORE)] | None = None
    distance: Annotated[float, Field(allow_inf_nan=False)] | None = None
    critic: str
    raw: str | None = None
    status: Literal["ok", "failed"] = "ok"
    error: str | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        phrases = {f"spans[{i}]": span.phrase for i, span in enumerate(self.spans)}
        phrases |= {f"omissions[{i}]": omission.phrase for i, omission in enumerate(self.omissions)}
        for owner, phrase in phrases.items():
            if phrase is not None:
                _check_range(f"{owner}.phrase", phrase, "critique", self.critique)
        if self.status == "failed" and not self.error:
            raise ValueError('error is empty but status is "failed": give the reason')
        for span in self.spans:
            span.critic = span.critic or self.critic
        return self

    @classmethod
    def failure(cls, critic: str, error: str, raw: str | None = None) -> Feedback:
        """Return failed feedback: its sample is masked out and counted."""
        return cls(critic=critic, status="failed", error=error, raw=raw)


class Example(Strict):
    """A prompt, a completion, and feedback on the completion. Unknown fields are kept in `meta`.

    id: its name; feedback and reports refer to it.
    prompt: a text, or a conversation.
    completion: the answer to the prompt.
    reference: one or several right answers, for critics and metrics that compare.
    tests: a Python script with asserts, for the `code` critic.
    feedback: what was said about the completion.
    meta: everything else, such as the `document` that a summary is about.
    """

    id: str
    prompt: str | list[Message]
    completion: str = ""
    reference: str | list[str] | None = None
    tests: str | None = None
    feedback: Feedback | None = None
    meta: dict[str, Any] = {}

    @model_validator(mode="before")
    @classmethod
    def _keep_unknown_fields(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        known = {k: v for k, v in data.items() if k in cls.model_fields}
        unknown = {k: v for k, v in data.items() if k not in cls.model_fields}
        if known.get("reference") == []:  # the same as no reference
            known["reference"] = None
        meta = known.get("meta") or {}
        return {**known, "meta": {**meta, **unknown}} if isinstance(meta, dict) else known

    @model_validator(mode="after")
    def _spans_inside_completion(self) -> Self:
        if self.feedback is not None:
            for i, span in enumerate(self.feedback.spans):
                _check_range(f"feedback.spans[{i}]", (span.start, span.end), "completion", self.completion)
            for i, (start, end, _) in enumerate(self.feedback.scores or []):
                _check_range(f"feedback.scores[{i}]", (start, end), "completion", self.completion)
            for i, omission in enumerate(self.feedback.omissions):
                if omission.insert_at is not None and omission.insert_at > len(self.completion):
                    raise ValueError(
                        f"feedback.omissions[{i}].insert_at is {omission.insert_at} but the completion has "
                        f"{len(self.completion)} characters"
                    )
        return self

    @property
    def prompt_text(self) -> str:
        """The text of the prompt, without roles."""
        if isinstance(self.prompt, str):
            return self.prompt
        return "\n\n".join(message.content for message in self.prompt)


def _without_nulls(message: Any) -> Any:
    """Return a message without the keys that only others of its column have: Arrow fills them in."""
    return {key: value for key, value in message.items() if value is not None} if isinstance(message, dict) else message


def _check_range(field: str, bounds: Range, text_name: str, text: str) -> None:
    start, end = bounds
    if not 0 <= start < end:
        raise ValueError(f"{field} is ({start}, {end}): start must be at least 0 and below end")
    if end > len(text):
        raise ValueError(f"{field}.end is {end} but the {text_name} has {len(text)} characters")


def check_examples_file(path: Path) -> None:
    """Raise UserError where there is no such file, or it is a table."""
    if not path.is_file():
        raise UserError(f"{path}: no such file; give the path of a JSON lines file with one example per line")
    if path.suffix in _TABLES:
        raise UserError(
            f"{path}: a table, not JSON lines; `text2grad import {path} -o feedback.jsonl` makes feedback of its "
            f"comments"
        )


def read_examples(path: str | Path) -> Iterator[Example]:
    """Stream the examples of a JSON lines file; an error names file, line and field."""
    path = Path(path)
    check_examples_file(path)
    with open_maybe_gzip(path, "rt", encoding="utf-8-sig") as lines:  # some editors write a byte order mark
        try:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield parse_example(line.strip(), where=f"{path}:{number}")
        except UnicodeDecodeError as error:
            raise UserError(f"{path}: not UTF-8 ({error.reason}); save it as UTF-8") from error


def parse_example(line: str, where: str) -> Example:
    """Parse one JSON line; `where` starts the error message."""
    try:
        return Example.model_validate_json(line)
    except ValidationError as error:
        raise UserError(f"{where}: {describe(error).replace(' at line 1 column ', ' at column ')}") from error


def validate(kind: type[Model], data: Any, where: str) -> Model:
    """Validate plain data; `where` starts the error message."""
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        raise UserError(f"{where}: {describe(error)}") from error


def describe(error: ValidationError) -> str:
    """Return pydantic's first error as `field: message`."""
    first = error.errors(include_url=False)[0]
    field, message = field_path(first["loc"]), first["msg"].removeprefix("Value error, ")
    return f"{field}: {message}" if field else message


def field_path(parts: Iterable[int | str]) -> str:
    """Return the location of one of pydantic's errors as `spans[0].end`."""
    return ".".join(f"[{part}]" if isinstance(part, int) else part for part in parts).replace(".[", "[")


def write_examples(path: str | Path, examples: Iterable[Example]) -> None:
    """Write one example per line, without fields that have their default value."""
    with Path(path).open("w", encoding="utf-8") as out:
        out.writelines(example.model_dump_json(exclude_defaults=True) + "\n" for example in examples)


def to_dataset(examples: Iterable[Example]) -> Dataset:
    """Return a Hugging Face dataset with one column per field; `feedback` and `meta` are JSON strings.

    Arrow columns have one type each, while feedback and meta vary from row to row.
    Prompts must be all strings or all conversations.
    """
    from datasets import Dataset

    rows = []
    for example in examples:
        row = example.model_dump(mode="json", include={"id", "prompt", "completion", "reference", "tests"})
        row["feedback"] = example.feedback.model_dump_json(exclude_defaults=True) if example.feedback else None
        row["meta"] = json.dumps(example.meta)
        rows.append(row)
    for column in ("prompt", "reference"):
        kinds = {type(row[column]) for row in rows} - {type(None)}
        if len(kinds) > 1:
            raise UserError(f"{column} is a string in some examples and a list in others; a dataset needs one type")
    return Dataset.from_list(rows)


def from_dataset(dataset: Dataset) -> Iterator[Example]:
    """Yield the examples of a dataset made by `to_dataset`, or of any with TRL's columns (prompt, completion, ...).

    An id may be a number; a row without one has its own number. A completion in chat format is one message.
    """
    for number, row in enumerate(dataset):
        fields = {name: value for name, value in row.items() if value is not None}
        for name in ("prompt", "completion"):
            if isinstance(fields.get(name), list):
                fields[name] = list(map(_without_nulls, fields[name]))
        if isinstance(said := fields.get("completion"), list) and len(said) == 1 and isinstance(said[0], dict):
            fields["completion"] = said[0].get("content")
        for name in ("feedback", "meta"):
            if isinstance(fields.get(name), str):
                try:
                    fields[name] = json.loads(fields[name])
                except ValueError as error:
                    raise UserError(
                        f"row {number}: {name} is a text that is not JSON ({error}); rename the column, or write it "
                        f"as JSON"
                    ) from error
        yield validate(Example, fields | {"id": str(fields.get("id", number))}, where=f"row {number}")
