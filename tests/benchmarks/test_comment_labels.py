"""The measures of readings against labels, on rows whose results a reader can redo."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from comment_labels import LabelledComment, calibration, labelled, load, load_labels, measure, read, span_outcomes

COMMENT = LabelledComment("a01-1", "The day is wrong. No price. Nice end.", "We meet on Friday at noon. See you.", None)
CLAUSES = [
    {"text": "The day is wrong.", "stance": "poor", "spans": ["Friday"], "whole": False, "missing": None},
    {"text": "No price.", "stance": "poor", "spans": [], "whole": False, "missing": "price"},
    {"text": "Nice end.", "stance": "good", "spans": ["See you."], "whole": False, "missing": None},
]


def change(number: int, **fields: object) -> list[dict]:
    return [clause | (fields if i == number else {}) for i, clause in enumerate(CLAUSES)]


GOLD = [labelled(COMMENT, CLAUSES)]


def test_a_labelling_agrees_with_itself() -> None:
    assert measure(GOLD, GOLD) == {
        "stance": 1.0,
        "span_f1": 1.0,
        "omission_precision": 1.0,
        "omission_recall": 1.0,
        "wrong_direction": 0.0,
        "refused": 0.0,
    }


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        (change(0, stance="good"), {"stance": 2 / 3, "wrong_direction": 1.0, "span_f1": 1.0}),
        (change(0, spans=["on Friday"]), {"span_f1": (2 / 3 + 1) / 2}),
        (change(0, spans=[]), {"span_f1": 0.5, "refused": 0.5, "wrong_direction": 0.0}),
        (change(1, missing=None), {"omission_recall": 0.0, "omission_precision": 0.0}),
        (change(2, missing="end"), {"omission_recall": 1.0, "omission_precision": 0.5}),
        (change(2, stance="unsure"), {"stance": 2 / 3, "refused": 0.5, "wrong_direction": 0.0}),
        ([], {"stance": 0.0, "span_f1": 0.0, "refused": 1.0}),
    ],
)
def test_each_difference_counts_where_it_should(clauses: list[dict], expected: dict[str, float]) -> None:
    found = measure(GOLD, [labelled(COMMENT, clauses)])
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_the_whole_is_all_words() -> None:
    gold = [labelled(COMMENT, change(0, spans=[], whole=True))]
    assert len(gold[0][0].words) == 8
    assert measure(gold, gold)["span_f1"] == 1.0


def test_calibration_by_hand() -> None:
    found = calibration([(0.9, True), (0.9, False), (0.1, False), (0.1, False)])
    assert found == pytest.approx({"ece": (2 * 0.4 + 2 * 0.1) / 4, "sure_right": 0.5, "sure_share": 0.5, "spans": 4})


def test_files_and_readings(tmp_path: Path) -> None:
    rows = {
        "answers": {"id": "a01", "kind": "letter", "prompt": "When?", "completion": COMMENT.completion},
        "comments": {"id": "a01-1", "answer": "a01", "comment": '"Friday" is wrong.'},
        "labels_1": {"id": "a01-1", "clauses": [CLAUSES[0] | {"text": '"Friday" is wrong.'}]},
    }
    for name, row in rows.items():
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row) + "\n")
    comments = load([tmp_path])
    gold, found = load_labels([tmp_path], 1, comments), [read(comment) for comment in comments]
    assert measure(gold, found)["span_f1"] == 1.0
    ((confidence, right),) = span_outcomes(gold, found)
    assert right
    assert 0 < confidence <= 1
