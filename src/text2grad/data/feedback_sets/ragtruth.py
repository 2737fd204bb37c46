"""RAGTruth: responses with hallucinated spans that people marked (ParticleMedia/RAGTruth, Niu et al., 2024).

The files are response.jsonl and, joined by `source_id`, source_info.jsonl.
Tested on files of that shape, not on the set itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from text2grad.data.feedback_sets.fields import checked_span, text_field
from text2grad.data.rows import Row, read_rows_of
from text2grad.errors import UserError
from text2grad.schema import Example, Feedback

SOURCES = "source_info.jsonl"
_META = ("model", "temperature", "split", "quality")


def make_convert(responses: str | Path, sources: Path | None = None) -> Callable[[Row], Iterator[Example]]:
    """Return the conversion of rows of response.jsonl. sources: None for source_info.jsonl beside it."""
    sources = sources or Path(responses).parent / SOURCES
    if not sources.is_file():
        raise UserError(f"{sources}: no such file; RAGTruth's responses need its {SOURCES}: give it with --second")
    by_id = {str(row.fields.get("source_id")): row.fields for row in read_rows_of(sources) if row.error is None}

    def convert(row: Row) -> Iterator[Example]:
        identity = str(row.fields["source_id"])
        if identity not in by_id:
            raise ValueError(f"source_id {identity} is not in {sources}")
        return convert_response(row.fields, by_id[identity])

    return convert


def convert_response(fields: Mapping[str, Any], source: Mapping[str, Any]) -> Iterator[Example]:
    """Yield the response with one blamed span per label; the annotator's comment is the reason.

    Severity: 1 for evident and 0.5 for subtle hallucinations; half of it where the words are true, but not in the
    source (`implicit_true`). A response without labels has feedback that blames nothing.
    """
    completion = text_field(fields, "response")
    labels = fields["labels"]
    reasons = [_reason(label) for label in labels]
    spans = [
        checked_span(completion, label["start"], label["end"], label["text"], severity=_severity(label), reason=reason)
        for label, reason in zip(labels, reasons, strict=True)
    ]
    yield Example(
        id=f"ragtruth-{fields['id']}",
        prompt=text_field(source, "prompt"),
        completion=completion,
        feedback=Feedback(critique="\n".join(reasons), spans=spans, critic="human"),
        meta={
            **_document(source["source_info"]),
            "task_type": source.get("task_type"),
            "label_types": [label["label_type"] for label in labels],
            **{name: fields[name] for name in _META if name in fields},
        },
    )


def _severity(label: Mapping[str, Any]) -> float:
    severity = 0.5 if label["label_type"].startswith("Subtle") else 1.0
    return severity / 2 if label.get("implicit_true") else severity


def _reason(label: Mapping[str, Any]) -> str:
    comment = " ".join(str(label.get("meta") or "").split())
    return f"{label['label_type']}: {comment}" if comment else label["label_type"]


def _document(info: Any) -> dict[str, str]:
    """Return the text that a response must follow, and the question where there is one."""
    if isinstance(info, str):
        return {"document": info}
    if "passages" in info:
        return {"document": info["passages"], "question": info["question"]}
    return {"document": json.dumps(info, ensure_ascii=False)}
