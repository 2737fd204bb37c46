"""MBPP: short Python problems with three asserts each, split by id as published.

11-510 is the test set, 511-600 the validation set, 601-974 the training set; the first ten are few-shot examples.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from text2grad.data.reading import find_dataset_file, read_rows
from text2grad.data.split import Split
from text2grad.schema import Example

PROMPT = "{text}\nYour code should pass this test:\n\n{test}\n\nAnswer with the Python code alone."
PublishedSplit = Literal["train", "validation", "test"]
IDS: dict[PublishedSplit, range] = {"test": range(11, 511), "validation": range(511, 601), "train": range(601, 975)}


def load(split: Split) -> Iterator[Example]:
    """Load the training set, or the validation set as held-out examples."""
    return read(find_dataset_file("mbpp", "mbpp/mbpp.jsonl.gz"), "train" if split == "train" else "validation")


def read(path: str | Path, split: PublishedSplit) -> Iterator[Example]:
    """Stream one example per problem of mbpp.jsonl. The prompt shows the first test; `tests` has all of them."""
    for row in read_rows(path, "mbpp.jsonl or mbpp.jsonl.gz"):
        if row["task_id"] in IDS[split]:
            yield _example(row)


def _example(row: dict[str, Any]) -> Example:
    return Example(
        id=f"mbpp-{row['task_id']}",
        prompt=PROMPT.format(text=row["text"], test=row["test_list"][0]),
        reference=row["code"].replace("\r\n", "\n"),
        tests="\n".join(filter(None, [row["test_setup_code"], *row["test_list"]])),
    )
