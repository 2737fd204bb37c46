from __future__ import annotations

import csv
import gzip
import os
from collections import Counter
from pathlib import Path

import pytest

from text2grad.data.haluquestqa import read
from text2grad.errors import UserError

PUBLISHED = Path(os.environ.get("TEXT2GRAD_DATA", "../shared/data")) / "haluquestqa" / "HaluQuestQA.csv.gz"

ROW = {
    "question_text": "Why is the sky blue?",
    "ans1_text": "Blue light scatters more.\nIt is like a pinball machine, it bounces around.",
    "ans2_text": "Because of the sea.",
    "factuality_span": "['because of the sea', 'ANSWER2:']",
    "factuality_reason": "['The sea has nothing\\r\\n\\r\\nto do with it.', 'All wrong.']",
    "factuality_label": "['answer2', 'answer2']",
    "irrelevance_span": "['The sea is salty.']",
    "irrelevance_reason": "['Who asked?']",
    "irrelevance_label": "['answer2']",
    "incomplete_ans_span": "['Blue light scatters', 'ANSWER1']",
    "incomplete_ans_reason": "['Why does it?', 'Sunsets are missing.']",
    "incomplete_ans_label": "['answer1', 'answer1']",
    "reference_example_span": "['It is like a pinball machine', 'It']",
    "reference_example_reason": "['A vivid picture.', 'The second \"it\" is vague.']",
    "reference_example_label": "['answer1', 'answer1']",
    "reference_example_helpful": "[True, False]",
    "category": "physics",
    "annotator": "a",
    "ans1_label": "model_answer",
    "ans2_label": "human_answer",
    "ans_preference": "Answer 1",
    "ans_preference_reason": "It is right.",
}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "HaluQuestQA.csv.gz"
    with gzip.open(path, "wt", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, list(ROW), delimiter="\t")
        writer.writeheader()
        writer.writerow(ROW)
    return path


def test_marks_become_spans_with_their_reasons(table: Path) -> None:
    first, second = read(table)

    assert (first.id, first.prompt, first.completion) == (
        "haluquestqa-0-answer1",
        ROW["question_text"],
        ROW["ans1_text"],
    )
    assert first.feedback is not None
    spans = [(first.completion[span.start : span.end], span.label, span.match) for span in first.feedback.spans]
    assert spans == [
        ("Blue light scatters", "poor", "exact"),
        ("It is like a pinball machine", "good", "exact"),
        ("it", "poor", "normalized"),
    ]
    assert [span.critic for span in first.feedback.spans] == [
        "expert:incomplete_ans",
        "expert:reference_example",
        "expert:reference_example",
    ]
    for span in first.feedback.spans:
        assert span.phrase is not None
        assert first.feedback.critique[slice(*span.phrase)] == span.reason
    assert first.meta["preferred"] is True
    assert second.meta["preferred"] is False
    assert second.meta["written_by"] == "human"


def test_marks_of_the_whole_answer_and_marks_that_are_nowhere(table: Path) -> None:
    first, second = read(table)

    assert first.feedback is not None
    assert [omission.text for omission in first.feedback.omissions] == ["Sunsets are missing."]
    assert second.feedback is not None
    assert [(span.start, span.end, span.match) for span in second.feedback.spans] == [
        (0, 18, "normalized"),
        (0, len(second.completion), "offset"),
    ]
    assert second.feedback.unmatched == ["The sea is salty."]
    assert second.feedback.critique == "The sea has nothing to do with it.\nAll wrong.\nWho asked?"


def test_a_missing_or_foreign_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"absent\.csv: no such file"):
        next(read(tmp_path / "absent.csv"))
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"other\.csv: no column ans1_text"):
        next(read(other))


@pytest.mark.skipif(not PUBLISHED.is_file(), reason="needs HaluQuestQA under TEXT2GRAD_DATA")
def test_the_published_file_is_located_almost_completely() -> None:
    examples = list(read(PUBLISHED))
    feedback = [example.feedback for example in examples if example.feedback is not None]

    assert len(examples) == len(feedback) == 2 * 698
    assert sum(len(one.unmatched) for one in feedback) <= 1
    how = Counter(span.match for one in feedback for span in one.spans)
    assert how["exact"] + how["normalized"] + how["fuzzy"] == 1588
    assert how["offset"] + sum(len(one.omissions) for one in feedback) == 83
