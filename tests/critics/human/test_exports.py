"""Exports of doccano, and round trips through Label Studio's converter and Argilla's SDK where they are installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from text2grad.critics.human.critic import read_feedback
from text2grad.data.importing import ImportSummary
from text2grad.errors import UserError
from text2grad.schema import Example

PROMPT = "When is the meeting?"
ANSWER = "The meeting is on Friday 😀 in Rome. See you."


def dumped(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def marked(example: Example) -> list[tuple[str, str]]:
    assert example.feedback is not None
    return [(example.completion[span.start : span.end], span.label) for span in example.feedback.spans]


# doccano


@pytest.mark.parametrize(
    "labels",
    [
        {"label": [[18, 24, "poor"], [27, 34, "good"]]},
        {"labels": [[18, 24, "poor"], [27, 34, "good"]]},
        {
            "entities": [
                {"id": 1, "label": "poor", "start_offset": 18, "end_offset": 24},
                {"id": 2, "label": "good", "start_offset": 27, "end_offset": 34},
            ],
            "relations": [],
        },
    ],
    ids=["label", "labels", "entities"],
)
def test_doccano_spans_and_comments(tmp_path: Path, labels: dict[str, Any]) -> None:
    line = {"id": 5, "text": ANSWER, "prompt": PROMPT, **labels, "Comments": ['"See you" is too casual.']}

    (example,) = read_feedback(dumped(tmp_path / "admin.jsonl", line))

    assert (example.id, example.prompt, example.completion) == ("5", PROMPT, ANSWER)
    assert marked(example) == [("Friday", "poor"), ("in Rome", "good"), ("See you", "poor")]


def test_doccano_texts_without_marks_and_with_categories(tmp_path: Path) -> None:
    lines = [
        {"id": 1, "text": "A.", "question": PROMPT, "label": []},
        {"id": 2, "text": "B.", "question": PROMPT, "entities": [], "cats": ["bad", "curt"]},
    ]

    plain, rated = read_feedback(dumped(tmp_path / "a.jsonl", *lines))

    assert plain.feedback is None
    assert rated.feedback is not None
    assert (rated.feedback.score, rated.meta) == (-1.0, {"cats": ["curt"]})


def test_doccano_lines_that_are_broken_are_named_and_skipped(tmp_path: Path) -> None:
    lines = [
        {"id": 1, "text": ANSWER, "prompt": PROMPT, "label": [[18, 99, "poor"]]},
        {"id": 2, "text": ANSWER, "label": [[18, 24, "poor"]]},
        {"id": 3, "text": ANSWER, "prompt": PROMPT, "label": [[18, 24, "Fluff"]]},
        {"id": 4, "text": ANSWER, "prompt": PROMPT, "label": [[18, 24, "poor"]]},
    ]
    path, summary = dumped(tmp_path / "a.jsonl", *lines), ImportSummary()

    (example,) = read_feedback(path, summary=summary)

    assert example.id == "4"
    assert summary.rows == 4
    outside, without_prompt, unknown = (sentence.partition("a.jsonl:")[2] for sentence in summary.skipped)
    assert outside == f"1: start is 18 and end 99, but the completion has {len(ANSWER)} characters"
    assert without_prompt.startswith("2: no field prompt or instruction or question")
    assert unknown.startswith('3: the meaning of label "Fluff" is unknown')
    with pytest.raises(UserError, match=r"a\.jsonl:1: start is 18"):
        list(read_feedback(path))


# Label Studio


def test_label_studio_json_min_has_one_record_per_annotation(tmp_path: Path) -> None:
    region = {"start": 18, "end": 24, "text": "Friday", "labels": ["poor"]}
    record = {"id": 1, "prompt": PROMPT, "answer": ANSWER, "annotator": 3, "annotation_id": 11, "label": [region]}
    other = record | {
        "annotation_id": 12,
        "label": json.dumps([region, region | {"start": 36, "end": 43, "text": "See you"}]),
    }
    lines = record | {"why": "It is on Monday.", "overall": "poor"}, other | {"comment": 'Not "in Rome".'}

    (example,) = read_feedback(dumped(tmp_path / "min.jsonl", *lines))

    assert marked(example) == [("Friday", "poor"), ("See you", "poor"), ("in Rome", "poor")]
    assert example.feedback is not None
    assert (example.feedback.spans[0].reason, example.feedback.score) == ("It is on Monday.", -1.0)


# Label Studio, through its own converter

CONFIG = """
<View>
  <Text name="prompt" value="$prompt"/>
  <Text name="answer" value="$answer"/>
  <Labels name="label" toName="answer"><Label value="good"/><Label value="poor"/></Labels>
  <TextArea name="why" toName="answer" perRegion="true"/>
  <Choices name="overall" toName="answer"><Choice value="good"/><Choice value="poor"/></Choices>
</View>
"""


def label_studio_task(answer: str) -> dict[str, Any]:
    region = {"start": 18, "end": 24, "text": "Friday"}
    return {
        "id": 1,
        "data": {"prompt": PROMPT, "answer": answer},
        "annotations": [
            {
                "id": 11,
                "completed_by": 3,
                "created_at": "2026-01-02T03:04:05Z",
                "updated_at": "2026-01-02T03:04:05Z",
                "lead_time": 2.5,
                "result": [
                    {
                        "id": "r1", "from_name": "label", "to_name": "answer", "type": "labels",
                        "value": region | {"labels": ["poor"]},
                    },
                    {
                        "id": "r1", "from_name": "why", "to_name": "answer", "type": "textarea",
                        "value": region | {"text": ["It is on Monday."]},
                    },
                    {
                        "id": "c1", "from_name": "overall", "to_name": "answer", "type": "choices",
                        "value": {"choices": ["poor"]},
                    },
                ],
            }
        ],
        "predictions": [],
    }  # fmt: skip


def test_label_studio_exports_of_its_own_converter(tmp_path: Path) -> None:
    converter = pytest.importorskip(
        "label_studio_sdk.converter", reason="label-studio-sdk is not installed: its converter is not tried"
    )
    tasks = [label_studio_task(ANSWER)]
    (tmp_path / "tasks.json").write_text(json.dumps(tasks), encoding="utf-8")
    export = converter.Converter(CONFIG, str(tmp_path), download_resources=False)
    export.convert_to_json(str(tmp_path / "tasks.json"), str(tmp_path / "full"), is_dir=False)
    export.convert_to_json_min(str(tmp_path / "tasks.json"), str(tmp_path / "min"), is_dir=False)

    (full,) = read_feedback(tmp_path / "full" / "result.json")
    (short,) = read_feedback(tmp_path / "min" / "result.json")
    export.convert_to_csv(str(tmp_path / "tasks.json"), str(tmp_path / "csv"), is_dir=False, sep=",", header=True)
    (table,) = read_feedback(tmp_path / "csv" / "result.csv")

    for example in (full, short, table):
        assert example.feedback is not None
        assert (example.id, example.prompt, example.completion) == ("1", PROMPT, ANSWER)
        assert marked(example) == [("Friday", "poor")]
        assert example.feedback.score == -1.0
        assert example.feedback.spans[0].reason == "It is on Monday."


# Argilla, through its SDK's records


def test_argilla_records_of_its_own_sdk(tmp_path: Path) -> None:
    rg = pytest.importorskip("argilla", reason="argilla is not installed: its records are not tried")
    user = "11111111-1111-4111-8111-111111111111"
    record = rg.Record(
        id="r1",
        fields={"prompt": PROMPT, "response": ANSWER},
        responses=[
            rg.Response("spans", [{"start": 18, "end": 24, "label": "poor"}], user_id=user),
            rg.Response("comment", 'The place, "in Rome", is right.', user_id=user),
            rg.Response("overall", "bad", user_id=user),
        ],
    )
    path = tmp_path / "records.json"
    path.write_text(json.dumps([record.to_dict()], default=str), encoding="utf-8")

    (example,) = read_feedback(path)

    assert (example.id, example.prompt, example.completion) == ("r1", PROMPT, ANSWER)
    assert marked(example) == [("Friday", "poor"), ("in Rome", "good")]
    assert example.feedback is not None
    assert (example.feedback.score, example.feedback.spans[0].critic) == (-1.0, f"human:{user}")
