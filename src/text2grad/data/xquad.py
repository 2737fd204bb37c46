"""XQuAD (English): questions about Wikipedia paragraphs whose answers are words of the paragraph, in SQuAD's format."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from text2grad.data.reading import find_dataset_file, load_from_hub, open_dataset_file
from text2grad.data.split import Split, split_by_prompt
from text2grad.schema import Example

PROMPT = "{document}\n\nAnswer the question from the text above, in a few words.\n\n{question}"
FILE = "xquad_en/xquad.en.json.gz"


def load(split: Split) -> Iterator[Example]:
    """Load one split: a fifth of the paragraphs is held out, with all questions about them."""
    path = find_dataset_file(FILE)
    examples = read(path) if path is not None else _read_hub()
    train, heldout = split_by_prompt(examples, share=0.2, key=lambda example: str(example.meta["document"]))
    return iter(train if split == "train" else heldout)


def read(path: str | Path) -> Iterator[Example]:
    """Stream one example per question, with an empty completion, from plain or gzipped JSON.

    `reference` lists the accepted answers without duplicates; `meta` holds document, question and title.
    """
    with open_dataset_file(path, "xquad.en.json or xquad.en.json.gz") as file:
        articles = json.load(file)["data"]
    for article in articles:
        for paragraph in article["paragraphs"]:
            for item in paragraph["qas"]:
                answers = [answer["text"] for answer in item["answers"]]
                yield _example(item["id"], paragraph["context"], item["question"], answers, title=article["title"])


def _read_hub() -> Iterator[Example]:
    for row in load_from_hub("xquad", FILE, "validation", path="google/xquad", name="xquad.en"):
        yield _example(row["id"], row["context"], row["question"], row["answers"]["text"])


def _example(identity: str, document: str, question: str, answers: list[str], **meta: str) -> Example:
    return Example(
        id=identity,
        prompt=PROMPT.format(document=document, question=question),
        reference=list(dict.fromkeys(answers)),
        meta={"document": document, "question": question, **meta},
    )
