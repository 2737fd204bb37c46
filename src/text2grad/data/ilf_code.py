"""ILF: failing programs with a person's critique and fix, for 195 MBPP tasks.

From "Improving Code Generation by Training with Natural Language Feedback"
(https://github.com/nyu-mll/ILF-for-code-generation).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from text2grad.data.reading import read_rows
from text2grad.schema import Example, Feedback


def read(path: str | Path) -> Iterator[Example]:
    """Stream the annotations: the failing program is the completion, the fix the reference.

    The prompt ends in a function header and the completion is the function body. The critique has no spans.
    """
    return map(_example, read_rows(path, "surge_annotations.jsonl.gz"))


def _example(row: dict[str, Any]) -> Example:
    prompt = row["prompt"]
    return Example(
        id=f"ilf-{row['task_id']}",
        prompt=prompt,
        completion=row["original_model_completion"].removeprefix(prompt),
        reference=row["unedited_annotator_completion"].removeprefix(prompt),
        tests=row["test"],
        feedback=Feedback(critique=row["Feedback"], critic="human"),
        meta={"task_id": row["task_id"]},
    )
