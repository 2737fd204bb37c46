"""SciTLDR (abstracts): abstracts of papers with one-sentence summaries, several per abstract in the dev set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from text2grad.data.reading import find_dataset_file, load_from_hub, read_rows
from text2grad.data.split import Split
from text2grad.schema import Example

PROMPT = "{document}\n\nSummarise the text above in one sentence."
# The hub's own conversion to Parquet: the dataset itself is a script, which `datasets` does not run any more.
HUB_FILES = "hf://datasets/allenai/scitldr@~parquet/Abstract/{split}/*.parquet"


def load(split: Split) -> Iterator[Example]:
    """Load the training set, or the dev set as held-out examples."""
    file = f"scitldr_a/{'train' if split == 'train' else 'dev'}.jsonl.gz"
    path = find_dataset_file(file)
    if path is None:
        published = "train" if split == "train" else "validation"
        files = {published: HUB_FILES.format(split=published)}
        return _examples(load_from_hub("scitldr", file, published, path="parquet", data_files=files))
    return read(path)


def read(path: str | Path) -> Iterator[Example]:
    """Stream one example per abstract of train.jsonl or dev.jsonl; `meta` holds the document."""
    return _examples(read_rows(path, "SciTLDR's train.jsonl.gz or dev.jsonl.gz"))


def _examples(rows: Iterable[dict[str, Any]]) -> Iterator[Example]:
    for row in rows:
        document = " ".join(row["source"])
        yield Example(
            id=f"scitldr-{row['paper_id']}",
            prompt=PROMPT.format(document=document),
            reference=list(row["target"]),
            meta={"document": document},
        )
