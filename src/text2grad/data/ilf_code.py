"""Failing programs with a person's critique and fix: 195 tasks from "Improving Code Generation by Training with Natural
Language Feedback" (https://github.com/nyu-mll/ILF-for-code-generation)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from text2grad.data.reading import open_dataset_file
from text2grad.schema import Example, Feedback


def read(path: str | Path) -> Iterator[Example]:
    """Stream the annotations, gzipped JSON lines: the failing program is the completion, the fix the reference.

    The prompt ends in the header of a function and the completion is its body. The critique has no spans.
    """
    with open_dataset_file(path, "surge_annotations.jsonl.gz") as lines:
        for line in lines:
            yield _example(json.loads(line))


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
