"""DeFacto: summaries with a person's critique, edit instruction and correction."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from text2grad.data.diff import WORD, corrected_part, diff_tokens, insertion_point
from text2grad.data.reading import read_rows
from text2grad.schema import Example, Feedback, Omission, Range, Span

FILES = "DeFacto's train.jsonl.gz or val.jsonl.gz"
MAX_REPLACEMENT = 12  # words; more are another sentence, not a correction of this one


def read(path: str | Path) -> Iterator[Example]:
    """Stream the rows of train.jsonl or val.jsonl: the prompt is the article, the completion the model's summary.

    The critique is the person's explanation, followed by the edit instruction if there is one. Spans blame the words
    that the correction changed, without regard to case, and say what the person wrote there instead, up to
    MAX_REPLACEMENT words; a correction that only inserts words is an omission, with its place.
    """
    return map(_example, read_rows(path, FILES))


def read_corrected(path: str | Path) -> Iterator[Example]:
    """Stream the corrected summaries as completions without blame: contrast for training."""
    for row in read_rows(path, FILES):
        if row["has_error"] and row["feedback"]["summary"]:
            yield Example(
                id=f"defacto-{row['doc_id']}-corrected",
                prompt=row["article"],
                completion=row["feedback"]["summary"],
                reference=row["abstract"],
                feedback=Feedback(critic="human"),
            )


def _replacement(before: str, after: str, bounds: Range) -> str | None:
    """Return what the corrected text has in this place; None where that is not clear, or more than a correction."""
    part = corrected_part(before, after, bounds)
    return part if part is not None and len(part.split()) <= MAX_REPLACEMENT else None


def _omission(before: str, after: str, bounds: Range) -> Omission:
    insert_at, insertion = insertion_point(before, after, bounds)
    return Omission(text=insertion.strip(), insert_at=insert_at, insertion=insertion)


def _example(row: dict[str, Any]) -> Example:
    feedback = row["feedback"]
    explanation, instruction, corrected = feedback["explanation"], feedback["instruction"], feedback["summary"]
    is_corrected = bool(row["has_error"] and corrected)
    changed, inserted = diff_tokens(row["candidate"], corrected, WORD, str.lower) if is_corrected else ([], [])
    spans = [
        Span(
            start=start,
            end=end,
            label="poor",
            reason=explanation or None,
            replacement=_replacement(row["candidate"], corrected, (start, end)),
        )
        for start, end in changed
    ]
    return Example(
        id=f"defacto-{row['doc_id']}",
        prompt=row["article"],
        completion=row["candidate"],
        reference=row["abstract"],
        feedback=Feedback(
            critique=f"{explanation} {instruction}".strip(),
            spans=spans,
            omissions=[] if spans else [_omission(row["candidate"], corrected, bounds) for bounds in inserted],
            critic="human",
        ),
        meta={
            "has_error": row["has_error"],
            "explanation": explanation,
            "instruction": instruction,
            "evidence": feedback["evidence"],
            "corrected": corrected,
        },
    )
