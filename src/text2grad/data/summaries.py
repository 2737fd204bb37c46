"""Summarisation of the short texts that ship with the package; the quickstart trains on them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files

from text2grad.data.split import Split
from text2grad.schema import Example

PROMPT = "{document}\n\nSummarise the text above in one short sentence."


def load(split: Split) -> Iterator[Example]:
    """Load examples with the text in `meta["document"]`; the reference is for evaluation only."""
    path = files("text2grad").joinpath("data", "quickstart_texts", f"{split}.jsonl")
    for record in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        yield Example(
            id=record["id"],
            prompt=PROMPT.format(document=record["document"]),
            reference=record["reference"],
            meta={"document": record["document"]},
        )
