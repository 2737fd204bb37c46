from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from text2grad.data.fgrlhf import read
from text2grad.errors import UserError
from text2grad.schema import Example

PUBLISHED = Path(os.environ.get("TEXT2GRAD_DATA", "../shared/data")) / "fgrlhf_qa_feedback"

ROW: dict[str, Any] = {
    "question": "When was Bloom released?",
    "passages": [
        ["Bloom", "Bloom is an album by Troye Sivan.", "It was released in 2018."],
        ["Tour", "The tour began in May."],
    ],
    "gold": "In 2018.",
    "prediction 1": "Bloom came out in 2019. Bloom is an album. It is loud.",
    "prediction 2": "2018.",
    "prediction 3": "2017.",
    "prediction 4": "2016.",
    "preference": [1, 2],
    "feedback": {
        "errors": [
            {"error type": "Redundant", "explanation": "Bloom came out in 2019. ", "start": 24, "end": 42},
            {
                "error type": "Wrong-Grounding",
                "explanation": '{"passage_id":1,"sentence_id":[2]}',
                "start": 18,
                "end": 22,
            },
            {"error type": "Irrelevant", "explanation": "", "start": 43, "end": 54},
        ],
        "missing-info": [{"error type": "Missing-Major-Auxiliary", "passage_id": 2, "sentence_id": [1]}],
        "corrected-prediction": "Bloom came out in 2018.",
    },
}


def written(path: Path, *rows: dict[str, Any]) -> list[Example]:
    path.write_text(json.dumps(rows), encoding="utf-8")
    return list(read(path))


def test_offsets_become_spans_in_reading_order_with_their_evidence(tmp_path: Path) -> None:
    (example,) = written(tmp_path / "feedback.json", ROW)

    feedback = example.feedback
    assert feedback is not None
    assert feedback.critique.split("\n") == [
        '"2019" is not what the passages say: It was released in 2018.',
        '"Bloom is an album." repeats what was said: Bloom came out in 2019.',
        '"It is loud." is irrelevant to the question',
        "It does not say: The tour began in May.",
    ]
    assert [(example.completion[span.start : span.end], span.critic) for span in feedback.spans] == [
        ("2019", "human:Wrong-Grounding"),
        ("Bloom is an album.", "human:Redundant"),
        ("It is loud.", "human:Irrelevant"),
    ]
    lines = feedback.critique.split("\n")
    phrases = [span.phrase for span in feedback.spans] + [omission.phrase for omission in feedback.omissions]
    assert [feedback.critique[slice(*phrase)] for phrase in phrases if phrase] == lines
    assert [(omission.text, omission.severity) for omission in feedback.omissions] == [("The tour began in May.", 0.6)]


def test_the_corrected_answer_gives_the_replacements(tmp_path: Path) -> None:
    corrected = {"corrected-prediction": "Bloom came out in 2018. Bloom is an album."}
    row = {**ROW, "feedback": {**ROW["feedback"], **corrected}}
    changed_together = ROW
    examples = written(tmp_path / "feedback.json", row, changed_together)
    found = [[span.replacement for span in example.feedback.spans] for example in examples if example.feedback]
    assert found == [["2018", None, ""], [None, None, None]]


def test_the_passages_are_the_document_without_their_titles(tmp_path: Path) -> None:
    (example,) = written(tmp_path / "feedback.json", ROW)

    document = "Bloom is an album by Troye Sivan. It was released in 2018.\n\nThe tour began in May."
    assert example.meta["document"] == document
    assert example.prompt == f"{document}\n\nAnswer the question from the passages above.\n\nWhen was Bloom released?"
    assert (example.reference, example.meta["corrected"]) == ("In 2018.", "Bloom came out in 2018.")
    assert example.meta["predictions"][1:] == ["2018.", "2017.", "2016."]


def test_rows_without_feedback_are_questions(tmp_path: Path) -> None:
    row = {
        "question": "When?",
        "passages": [{"wikipage": "Bloom", "content": "In 2018."}],
        "answer": ["2018"],
        "text": "",
    }

    (example,) = written(tmp_path / "dev.json", row)

    assert (example.completion, example.feedback, example.reference) == ("", None, ["2018"])
    assert example.meta == {"document": "In 2018.", "question": "When?"}


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"absent\.json: no such file"):
        next(read(tmp_path / "absent.json"))


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="needs QA-Feedback under TEXT2GRAD_DATA")
def test_the_published_files_are_read_whole() -> None:
    feedback = [example.feedback for example in read(PUBLISHED / "dev_feedback.json.gz") if example.feedback]

    assert len(feedback) == 500
    kinds = Counter(span.critic for one in feedback for span in one.spans)
    assert kinds == {
        "human:Irrelevant": 909,
        "human:Wrong-Grounding": 163,
        "human:Unverifiable": 152,
        "human:Redundant": 133,
        "human:Incoherent": 16,
    }
    assert sum(len(one.omissions) for one in feedback) == 842
    assert len(list(read(PUBLISHED / "dev.json.gz"))) == 500
