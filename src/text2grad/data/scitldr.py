"""SciTLDR (abstracts): abstracts of papers with one-sentence summaries, several per abstract in the dev set."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from text2grad.data.reading import find_dataset_file, read_rows
from text2grad.data.split import Split
from text2grad.schema import Example

PROMPT = "{document}\n\nSummarise the text above in one sentence."


def load(split: Split) -> Iterator[Example]:
    """Load the training set, or the dev set as held-out examples."""
    name = "train" if split == "train" else "dev"
    return read(find_dataset_file("scitldr", f"scitldr_a/{name}.jsonl.gz"))


def read(path: str | Path) -> Iterator[Example]:
    """Stream one example per abstract of train.jsonl or dev.jsonl; `meta` holds the document."""
    for row in read_rows(path, "SciTLDR's train.jsonl.gz or dev.jsonl.gz"):
        document = " ".join(row["source"])
        yield Example(
            id=f"scitldr-{row['paper_id']}",
            prompt=PROMPT.format(document=document),
            reference=list(row["target"]),
            meta={"document": document},
        )
