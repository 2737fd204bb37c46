"""MBPP: short Python problems with three asserts each. Splits by id, as published: 11-510 test, 511-600 validation,
601-974 train; the first ten are examples for prompts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from text2grad.data.reading import open_dataset_file
from text2grad.schema import Example

PROMPT = "{text}\nYour code should pass this test:\n\n{test}\n\nAnswer with the Python code alone."
Split = Literal["train", "validation", "test"]
IDS: dict[Split, range] = {"test": range(11, 511), "validation": range(511, 601), "train": range(601, 975)}


def read(path: str | Path, split: Split) -> Iterator[Example]:
    """One example a problem, from mbpp.jsonl, plain or gzipped. The prompt shows the first test; all must pass."""
    with open_dataset_file(path, "mbpp.jsonl or mbpp.jsonl.gz") as lines:
        for line in lines:
            row = json.loads(line)
            if row["task_id"] in IDS[split]:
                yield _example(row)


def _example(row: dict[str, Any]) -> Example:
    return Example(
        id=f"mbpp-{row['task_id']}",
        prompt=PROMPT.format(text=row["text"], test=row["test_list"][0]),
        reference=row["code"].replace("\r\n", "\n"),
        tests="\n".join(filter(None, [row["test_setup_code"], *row["test_list"]])),
    )
