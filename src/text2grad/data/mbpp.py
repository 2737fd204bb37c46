"""MBPP: short Python problems with three asserts each, split by id as published.

11-510 is the test set, 511-600 the validation set, 601-974 the training set; the first ten are few-shot examples.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

from text2grad.data.reading import find_dataset_file, load_from_hub, read_rows
from text2grad.data.split import Split
from text2grad.schema import Example

PROMPT = "{text}\nYour code should pass this test:\n\n{test}\n\nAnswer with the Python code alone."
PublishedSplit = Literal["train", "validation", "test"]
IDS: dict[PublishedSplit, range] = {"test": range(11, 511), "validation": range(511, 601), "train": range(601, 975)}
FILE = "mbpp/mbpp.jsonl.gz"


def load(split: Split) -> Iterator[Example]:
    """Load the training set, or the validation set as held-out examples."""
    published: PublishedSplit = "train" if split == "train" else "validation"
    path = find_dataset_file(FILE)
    if path is None:
        rows = load_from_hub("mbpp", FILE, published, path="google-research-datasets/mbpp", name="full")
        return _examples(rows, published)
    return read(path, published)


def read(path: str | Path, split: PublishedSplit) -> Iterator[Example]:
    """Stream one example per problem of mbpp.jsonl. The prompt shows the first test; `tests` has all of them."""
    return _examples(read_rows(path, "mbpp.jsonl or mbpp.jsonl.gz"), split)


def _examples(rows: Iterable[dict[str, Any]], split: PublishedSplit) -> Iterator[Example]:
    return (_example(row) for row in rows if row["task_id"] in IDS[split])


def _example(row: dict[str, Any]) -> Example:
    return Example(
        id=f"mbpp-{row['task_id']}",
        prompt=PROMPT.format(text=row["text"], test=row["test_list"][0]),
        reference=row["code"].replace("\r\n", "\n"),
        tests="\n".join(filter(None, [row["test_setup_code"], *row["test_list"]])),
    )
