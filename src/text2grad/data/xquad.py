"""XQuAD (English): questions about paragraphs of Wikipedia, each answered by words of its paragraph; SQuAD's format."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from text2grad.data.reading import open_dataset_file
from text2grad.schema import Example

PROMPT = "{document}\n\nAnswer the question from the text above, in a few words.\n\n{question}"


def read(path: str | Path) -> Iterator[Example]:
    """One example a question, plain or gzipped JSON; completions are empty.

    The answers that count as right are the reference, each once; `meta` holds document, question and title.
    """
    with open_dataset_file(path, "xquad.en.json or xquad.en.json.gz") as file:
        articles = json.load(file)["data"]
    for article in articles:
        for paragraph in article["paragraphs"]:
            for item in paragraph["qas"]:
                document, question = paragraph["context"], item["question"]
                yield Example(
                    id=item["id"],
                    prompt=PROMPT.format(document=document, question=question),
                    reference=list(dict.fromkeys(answer["text"] for answer in item["answers"])),
                    meta={"document": document, "question": question, "title": article["title"]},
                )
