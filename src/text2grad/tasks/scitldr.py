"""SciTLDR (abstracts): abstracts of papers and one-sentence summaries of them, several for each of the dev set."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

from text2grad.errors import UserError
from text2grad.schema import Example

PROMPT = "{document}\n\nSummarise the text above in one sentence."


def read(path: str | Path) -> Iterator[Example]:
    """One example an abstract, from train.jsonl or dev.jsonl, plain or gzipped; `meta` holds the document."""
    path = Path(path)
    if not path.is_file():
        raise UserError(f"{path}: no such file; give the path of SciTLDR's train.jsonl.gz or dev.jsonl.gz")
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            document = " ".join(row["source"])
            yield Example(
                id=f"scitldr-{row['paper_id']}",
                prompt=PROMPT.format(document=document),
                reference=list(row["target"]),
                meta={"document": document},
            )
