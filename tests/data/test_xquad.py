from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from text2grad.data.xquad import read
from text2grad.errors import UserError

PUBLISHED = Path(os.environ.get("TEXT2GRAD_DATA", "../shared/data")) / "xquad_en" / "xquad.en.json.gz"


def test_a_question_becomes_a_prompt_with_its_answers_as_reference(tmp_path: Path) -> None:
    answers = [{"text": "308", "answer_start": 4}, {"text": "308", "answer_start": 9}, {"text": "308 points"}]
    paragraph = {
        "context": "They gave up 308 points.",
        "qas": [{"id": "q1", "question": "How many?", "answers": answers}],
    }
    path = tmp_path / "xquad.json.gz"
    with gzip.open(path, "wt", encoding="utf-8") as out:
        json.dump({"data": [{"title": "Panthers", "paragraphs": [paragraph]}]}, out)

    (example,) = read(path)

    assert (example.id, example.completion, example.reference) == ("q1", "", ["308", "308 points"])
    assert example.meta == {"document": "They gave up 308 points.", "question": "How many?", "title": "Panthers"}
    assert example.prompt == (
        "They gave up 308 points.\n\nAnswer the question from the text above, in a few words.\n\nHow many?"
    )


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"absent\.json: no such file"):
        next(read(tmp_path / "absent.json"))


@pytest.mark.skipif(not PUBLISHED.is_file(), reason="needs XQuAD under TEXT2GRAD_DATA")
def test_every_answer_of_the_published_file_is_in_its_document() -> None:
    examples = list(read(PUBLISHED))

    assert len({example.id for example in examples}) == 1190
    for example in examples:
        assert isinstance(example.reference, list)
        assert all(answer in example.meta["document"] for answer in example.reference)
