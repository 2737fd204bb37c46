"""DeFacto: summaries with a person's critique, edit instruction and correction."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from text2grad.data.diff import diff_tokens
from text2grad.data.reading import read_rows
from text2grad.schema import Example, Feedback, Omission, Range, Span

FILES = "DeFacto's train.jsonl.gz or val.jsonl.gz"
_WORD = re.compile(r"\S+")


def read(path: str | Path) -> Iterator[Example]:
    """Stream the rows of train.jsonl or val.jsonl: the prompt is the article, the completion the model's summary.

    The critique is the person's explanation, followed by the edit instruction if there is one. Spans blame the words
    that the correction changed, see `changed_words`; a correction that only inserts words is an omission.
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


def changed_words(before: str, after: str) -> tuple[list[Range], list[str]]:
    """Return the ranges of `before` that `after` replaced or deleted, and the words that it only inserted.

    Words are separated by white space and compared without case.
    """
    ranges, inserted = diff_tokens(before, after, _WORD, str.lower)
    return ranges, [" ".join(after[start:end].split()) for start, end in inserted]


def _example(row: dict[str, Any]) -> Example:
    feedback = row["feedback"]
    explanation, instruction, corrected = feedback["explanation"], feedback["instruction"], feedback["summary"]
    ranges, inserted = changed_words(row["candidate"], corrected) if row["has_error"] and corrected else ([], [])
    spans = [Span(start=start, end=end, label="poor", reason=explanation or None) for start, end in ranges]
    return Example(
        id=f"defacto-{row['doc_id']}",
        prompt=row["article"],
        completion=row["candidate"],
        reference=row["abstract"],
        feedback=Feedback(
            critique=f"{explanation} {instruction}".strip(),
            spans=spans,
            omissions=[] if spans else [Omission(text=words) for words in inserted],
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
