"""Feedback goes to annotation tools and comes back: every span the same, through the tools' own packages."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from text2grad.cli.app import app
from text2grad.critics.human.annotation_tasks import LABEL_STUDIO_CONFIG, to_argilla, to_label_studio
from text2grad.critics.human.critic import read_feedback
from text2grad.critics.human.exports import escape_line, unescape_line
from text2grad.errors import UserError
from text2grad.schema import Example, Feedback, Message, Omission, Span, read_examples, write_examples

ANSWER = "Hi 😀, we meet on Friday.\nOn Friday 😀 it rains in Rome. Bye \\n bye"
FRIDAY, SECOND = ANSWER.index("Friday"), ANSWER.rindex("Friday")
PLACED = Omission(text="the hour", insert_at=FRIDAY + 6, insertion=" at noon")
EXAMPLES = [
    Example(
        id="one",
        prompt="When?",
        completion=ANSWER,
        feedback=Feedback(
            critic="human",
            critique="Not Friday.",
            spans=[
                Span(start=0, end=2, label="good", reason="A greeting"),
                Span(start=FRIDAY, end=FRIDAY + 6, label="poor", severity=0.25, replacement="Monday\nor \\n Tuesday"),
                Span(start=SECOND, end=SECOND + 6, label="poor", replacement="", reason="Not\nFriday."),
            ],
            omissions=[Omission(text="who brings\nthe cake")],
        ),
    ),
    Example(
        id="two",
        prompt=[Message(role="system", content="Be brief."), Message(role="user", content="When?")],
        completion="On Friday.",
        feedback=Feedback(critic="human", spans=[Span(start=3, end=9, label="poor", replacement="Monday")]),
    ),
    Example(id="three", prompt="When?", completion="Never."),
]


def spans(example: Example, severities: bool = True) -> list[tuple]:
    assert example.feedback is not None
    return [
        (span.start, span.end, span.label, span.replacement, span.reason or span.label, severities and span.severity)
        for span in example.feedback.spans
    ]


def check_label_studio(back: list[Example]) -> None:
    for before, after in zip(EXAMPLES[:2], back[:2], strict=True):
        assert (after.id, after.prompt, after.completion) == (before.id, before.prompt, before.completion)
        assert spans(after) == spans(before)
    assert [omission.text for omission in back[0].feedback.omissions] == ["who brings\nthe cake"]
    assert back[2].feedback is None


def test_label_studio_and_back(tmp_path: Path) -> None:
    (tmp_path / "tasks.json").write_text(json.dumps([to_label_studio(example) for example in EXAMPLES]))
    check_label_studio(list(read_feedback(tmp_path / "tasks.json")))


def test_label_studio_and_back_through_its_own_converter(tmp_path: Path) -> None:
    converter = pytest.importorskip(
        "label_studio_sdk.converter", reason="label-studio-sdk is not installed: its converter is not tried"
    )
    tasks = [to_label_studio(example) | {"id": number} for number, example in enumerate(EXAMPLES, 7)]
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    export = converter.Converter(LABEL_STUDIO_CONFIG, str(tmp_path), download_resources=False)
    export.convert_to_json(str(tmp_path / "tasks.json"), str(tmp_path / "out"), is_dir=False)
    check_label_studio(list(read_feedback(tmp_path / "out" / "result.json")))


def test_words_to_insert_come_back_from_label_studio(tmp_path: Path) -> None:
    ends = Omission(text="an end", insert_at=len(ANSWER), insertion="!")
    example = EXAMPLES[0].model_copy(update={"feedback": Feedback(critic="human", omissions=[PLACED, ends])})
    (tmp_path / "tasks.json").write_text(json.dumps([to_label_studio(example)]))
    (back,) = read_feedback(tmp_path / "tasks.json")
    found = [(one.text, one.insert_at, one.insertion) for one in back.feedback.omissions]
    assert found == [("the hour", FRIDAY + 6, " at noon"), ("an end", len(ANSWER), "!")]


def test_argilla_and_back_through_its_own_records(tmp_path: Path) -> None:
    rg = pytest.importorskip("argilla", reason="argilla is not installed: its records are not tried")
    user = "11111111-1111-4111-8111-111111111111"
    records = [rg.Record.from_dict(json.loads(json.dumps(to_argilla(example)))) for example in EXAMPLES[:2]]
    accepted = [
        rg.Record(
            id=record.id,
            fields=record.fields.to_dict(),
            responses=[rg.Response(one.question_name, one.value, user_id=user) for one in record.suggestions],
        )
        for record in records
    ]
    (tmp_path / "records.json").write_text(json.dumps([record.to_dict() for record in accepted], default=str))
    back = list(read_feedback(tmp_path / "records.json"))
    for before, after in zip(EXAMPLES[:2], back, strict=True):
        assert (after.id, after.prompt, after.completion) == (before.id, before.prompt, before.completion)
        assert spans(after, severities=False) == spans(before, severities=False)
    assert [omission.text for omission in back[0].feedback.omissions] == ["who brings\nthe cake"]


def test_argilla_counts_as_browsers_do() -> None:
    marked = to_argilla(EXAMPLES[0])["suggestions"]["spans"]["value"]
    units = ANSWER.encode("utf-16-le")
    assert [units[2 * one["start"] : 2 * one["end"]].decode("utf-16-le") for one in marked] == [
        "Hi",
        "Friday",
        "Friday",
    ]


def test_failed_feedback_is_a_task_without_marks() -> None:
    failed = EXAMPLES[0].model_copy(update={"feedback": Feedback.failure("human", "unclear")})
    assert to_label_studio(failed)["annotations"] == [{"result": []}]
    assert to_argilla(failed)["suggestions"] == {}


@given(st.text(alphabet="a\\n\n ", max_size=8))
def test_a_text_on_one_line_comes_back(text: str) -> None:
    line = escape_line(text)
    assert "\n" not in line
    assert unescape_line(line) == text


@pytest.mark.parametrize("tool", ["label-studio", "argilla"])
def test_the_command_writes_tasks_that_the_import_reads(tool: str, tmp_path: Path) -> None:
    write_examples(tmp_path / "feedback.jsonl", EXAMPLES)
    arguments = ["export", str(tmp_path / "feedback.jsonl"), "--to", tool, "-o", str(tmp_path / "tasks.json")]
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "3 tasks written" in done.output
    assert re.search(r"<Labels|from_json", done.output)
    with pytest.raises(UserError, match=r"tasks\.json exists"):
        CliRunner().invoke(app, arguments, catch_exceptions=False)
    if tool == "label-studio":
        back = ["import", str(tmp_path / "tasks.json"), "-o", str(tmp_path / "back.jsonl")]
        assert CliRunner().invoke(app, back, catch_exceptions=False).exit_code == 0
        assert len(list(read_examples(tmp_path / "back.jsonl"))) == 3


def test_a_wrong_tool_and_a_file_without_one_are_sentences(tmp_path: Path) -> None:
    write_examples(tmp_path / "feedback.jsonl", EXAMPLES)
    for options, says in (["--to", "labelstudio"], "did you mean"), ([], "say for which tool"):
        command = ["export", str(tmp_path / "feedback.jsonl"), "-o", str(tmp_path / "x"), *options]
        with pytest.raises(UserError, match=says):
            CliRunner().invoke(app, command, catch_exceptions=False)
