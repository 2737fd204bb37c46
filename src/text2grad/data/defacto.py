"""DeFacto: summaries with a person's critique, edit instruction and correction; what that changed is blamed."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from text2grad.data.reading import open_dataset_file
from text2grad.schema import Example, Feedback, Omission, Span

_WORD = re.compile(r"\S+")


def read(path: str | Path) -> Iterator[Example]:
    """Stream the rows of train.jsonl or val.jsonl, plain or gzipped.

    The prompt is the article, the completion the model's summary. The critique is the person's explanation and, where
    there is one, the edit instruction after a space. A summary that was corrected has spans; see `changed`. A
    correction that only inserts words is an omission.
    """
    return map(_example, _rows(path))


def read_corrected(path: str | Path) -> Iterator[Example]:
    """The corrected summaries of the rows that have one, as answers that nobody blames: contrast for training."""
    for row in _rows(path):
        if row["has_error"] and row["feedback"]["summary"]:
            yield Example(
                id=f"defacto-{row['doc_id']}-corrected",
                prompt=row["article"],
                completion=row["feedback"]["summary"],
                reference=row["abstract"],
                feedback=Feedback(critic="human"),
            )


def _rows(path: str | Path) -> Iterator[dict[str, Any]]:
    with open_dataset_file(path, "DeFacto's train.jsonl.gz or val.jsonl.gz") as lines:
        yield from map(json.loads, lines)


def changed(before: str, after: str) -> tuple[list[tuple[int, int]], list[str]]:
    """The ranges of `before` that `after` replaced or deleted, and the words that it only inserted.

    Words are what stands between white space, compared without case. A range goes from the first to the last word of a
    change.
    """
    words = list(_WORD.finditer(before))
    new = after.split()
    matcher = difflib.SequenceMatcher(None, before.lower().split(), after.lower().split(), autojunk=False)
    ranges, inserted = [], []
    for what, start, end, new_start, new_end in matcher.get_opcodes():
        if what in ("replace", "delete"):
            ranges.append((words[start].start(), words[end - 1].end()))
        elif what == "insert":
            inserted.append(" ".join(new[new_start:new_end]))
    return ranges, inserted


def _example(row: dict[str, Any]) -> Example:
    feedback = row["feedback"]
    explanation, instruction, corrected = feedback["explanation"], feedback["instruction"], feedback["summary"]
    ranges, inserted = changed(row["candidate"], corrected) if row["has_error"] and corrected else ([], [])
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
