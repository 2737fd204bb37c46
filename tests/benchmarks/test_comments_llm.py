"""A model that says what the labels say is measured as right."""

from __future__ import annotations

import json
from typing import Any

import pytest
from comment_labels import LabelledComment, labelled, measure
from comments_llm import opinions

from text2grad.critics.llm.comment_reader import LLMCommentReader

COMMENT = LabelledComment("1", "Nice work. Friday is wrong. Where is the address?", "We meet on Friday at noon.", None)
LABELS: list[dict[str, Any]] = [
    {"text": "Nice work.", "stance": "good", "spans": [], "whole": True, "missing": None},
    {"text": "Friday is wrong.", "stance": "poor", "spans": ["Friday"], "whole": False, "missing": None},
    {"text": "Where is the address?", "stance": "poor", "spans": [], "whole": False, "missing": "the address"},
]


def reply(**changes: Any) -> str:
    parts = [
        {
            "phrase": label["text"],
            "opinion": label["stance"],
            "quotes": label["spans"],
            "whole": label["whole"],
            "missing": label["missing"],
        }
        | changes
        for label in LABELS
    ]
    return json.dumps({"reasoning": "", "parts": parts})


@pytest.fixture
def reader() -> LLMCommentReader:
    return LLMCommentReader(model="m", base_url="http://localhost:1/v1")


def test_the_labels_as_a_reply_are_right(reader: LLMCommentReader) -> None:
    measures = measure([labelled(COMMENT, LABELS)], [opinions(COMMENT, reply(), reader)])
    right = {"stance": 1.0, "span_f1": 1.0, "omission_precision": 1.0, "omission_recall": 1.0}
    assert measures == right | {"wrong_direction": 0.0, "refused": 0.0}


def test_other_replies_are_not(reader: LLMCommentReader) -> None:
    gold = [labelled(COMMENT, LABELS)]
    assert measure(gold, [opinions(COMMENT, reply(opinion="poor"), reader)])["stance"] == pytest.approx(2 / 3)
    assert measure(gold, [opinions(COMMENT, reply(opinion="unsure"), reader)])["refused"] == 1.0
    assert opinions(COMMENT, "I cannot say.", reader) == []
