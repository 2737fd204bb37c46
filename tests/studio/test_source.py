"""Answers of all kinds of files, and of runs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from studio_support import examples

from text2grad.errors import UserError
from text2grad.schema import Feedback, Span, write_examples
from text2grad.studio.source import is_source, read_answers, record_key
from text2grad.studio.workspace import Workspace


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_json_lines_with_and_without_feedback(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    first, second, *_ = examples()
    feedback = Feedback(critic="grounding", spans=[Span(start=0, end=3, label="poor")])
    write_examples(path, [first, second.model_copy(update={"feedback": feedback})])
    read = read_answers(path).examples
    assert [example.feedback for example in read] == [None, feedback]
    assert read[0] == first


def test_other_names_of_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("Question,Bot answer\nWhen?,At nine.\nWhen?,At nine.\n", encoding="utf-8")
    (example,) = read_answers(path).examples  # the same answer twice is one
    assert (example.prompt, example.completion) == ("When?", "At nine.")
    path.write_text("Frage,Antwort\nWann?,Um neun.\n", encoding="utf-8")
    (example,) = read_answers(path, {"prompt": "Frage", "completion": "Antwort"}).examples
    assert example.completion == "Um neun."


def test_comments_of_a_table_are_feedback(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('question,answer,comment\nWhen?,At nine.,"Not at ""nine""."\n', encoding="utf-8")
    (example,) = read_answers(path).examples
    assert example.feedback is not None
    assert [example.completion[s.start : s.end] for s in example.feedback.spans] == ["nine"]


def test_exports_of_tools(tmp_path: Path) -> None:
    region = {"start": 3, "end": 7, "text": "nine", "labels": ["poor"]}
    result = {"id": "r", "type": "labels", "from_name": "l", "to_name": "completion", "value": region}
    task = {"id": 1, "data": {"prompt": "When?", "completion": "At nine."}, "annotations": [{"result": [result]}]}
    label_studio = tmp_path / "ls.json"
    label_studio.write_text(json.dumps([task]))
    argilla = write(
        tmp_path / "argilla.jsonl",
        {
            "id": "x",
            "fields": {"prompt": "When?", "completion": "At nine."},
            "responses": {"spans": [{"value": [{"start": 3, "end": 7, "label": "poor"}], "user_id": "u"}]},
        },
    )
    doccano = write(tmp_path / "d.jsonl", {"id": 1, "prompt": "When?", "text": "At nine.", "label": [[3, 7, "poor"]]})
    for path in (label_studio, argilla, doccano):
        (example,) = read_answers(path).examples
        assert example.feedback is not None
        assert [(s.start, s.end, s.label) for s in example.feedback.spans] == [(3, 7, "poor")]


def test_a_run(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    write(run / "samples.jsonl", {"step": 1, "sample": 0, "prompt": "When?", "completion": "At ten.", "tokens": []})
    pair = {"id": "h", "prompt": "Who?", "before": {"completion": "Me."}, "after": {"completion": "Ada."}}
    (run / "evaluation.json").write_text(json.dumps({"n": 1, "examples": [pair]}))
    assert is_source(run)
    assert [(e.id, e.completion) for e in read_answers(run).examples] == [
        ("h before", "Me."),
        ("h after", "Ada."),
        ("step 1, sample 0", "At ten."),
    ]


def test_broken_rows_are_named_and_files_without_answers_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"prompt": "When?", "completion": "At nine."}\n{broken\n{"prompt": "x", "completion": ""}\n')
    answers = read_answers(path)
    assert len(answers.examples) == 1
    assert len(answers.skipped) == 2
    assert "a.jsonl:2" in answers.skipped[0]
    path.write_text('{"prompt": "When?"}\n')
    with pytest.raises(UserError, match="no answers to show"):
        read_answers(path)
    path.write_text('{"prompt": "When?", "completion": "\\ud800"}\n')
    with pytest.raises(UserError, match="no answers to show"):
        read_answers(path)


def test_a_file_of_broken_rows_says_what_is_wrong_with_which_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"prompt": "When?"\n[1]\n')
    with pytest.raises(UserError, match=r"bad\.jsonl:1: not valid JSON .*; .*bad\.jsonl:2: not a JSON object"):
        read_answers(path)


def test_the_key_depends_on_prompt_and_completion() -> None:
    keys = {record_key(example) for example in examples()}
    assert len(keys) == len(examples())
    one = examples()[0]
    assert record_key(one.model_copy(update={"id": "other"})) == record_key(one)


def test_odd_entries_of_a_folder_are_not_offered(tmp_path: Path) -> None:
    row = '{"prompt": "p", "completion": "fine"}'
    (tmp_path / "good.jsonl").write_text(row + "\n")
    (tmp_path / "loop.jsonl").symlink_to(tmp_path / "loop.jsonl")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff.jsonl")).write_text(row + "\n")
    assert [source.name for source in Workspace(tmp_path).sources()] == ["good.jsonl"]


def test_rows_with_unpaired_surrogates_anywhere_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows = [r'{"id": "\ud800x", "prompt": "p", "completion": "one"}', '{"prompt": "p", "completion": "two"}']
    path.write_text("\n".join(rows) + "\n")
    answers = read_answers(path)
    assert [example.completion for example in answers.examples] == ["two"]
    assert len(answers.skipped) == 1
