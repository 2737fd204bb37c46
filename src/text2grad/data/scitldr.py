"""SciTLDR (abstracts): abstracts of papers and one-sentence summaries of them, several for each of the dev set."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from text2grad.data.reading import open_dataset_file
from text2grad.schema import Example

PROMPT = "{document}\n\nSummarise the text above in one sentence."


def read(path: str | Path) -> Iterator[Example]:
    """One example an abstract, from train.jsonl or dev.jsonl, plain or gzipped; `meta` holds the document."""
    with open_dataset_file(path, "SciTLDR's train.jsonl.gz or dev.jsonl.gz") as lines:
        for line in lines:
            row = json.loads(line)
            document = " ".join(row["source"])
            yield Example(
                id=f"scitldr-{row['paper_id']}",
                prompt=PROMPT.format(document=document),
                reference=list(row["target"]),
                meta={"document": document},
            )
