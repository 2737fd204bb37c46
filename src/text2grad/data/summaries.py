"""Summarisation of the short texts that come with the package: what the quickstart trains on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Literal

from text2grad.schema import Example

PROMPT = "{document}\n\nSummarise the text above in one short sentence."


def read(split: Literal["train", "heldout"]) -> Iterator[Example]:
    """Examples with the text in `meta["document"]`; the reference is for evaluation, no critic reads it."""
    lines = (
        files("text2grad")
        .joinpath("data", "quickstart_texts", f"{split}.jsonl")
        .read_text(encoding="utf-8")
        .splitlines()
    )
    for record in map(json.loads, lines):
        yield Example(
            id=record["id"],
            prompt=PROMPT.format(document=record["document"]),
            reference=record["reference"],
            meta={"document": record["document"]},
        )
