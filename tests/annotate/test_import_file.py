"""Imports are written completely or not at all, and show what they take for what."""

from __future__ import annotations

import json

import pytest

from text2grad.annotate.import_file import GuessedColumn, import_comments, import_set, show_columns
from text2grad.errors import UserError
from text2grad.schema import read_examples

ROW = {"prompt": "When?", "completion": "On Friday.", "comment": 'Not on "Friday".'}


@pytest.fixture
def write(tmp_path):
    def write(name, *records):
        path = tmp_path / name
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        return str(path)

    return write


def test_columns_of_the_first_readable_row(write, tmp_path):
    path = write("a.jsonl", [1], ROW | {"Note": "x"})
    assert show_columns(path, {"comment": "Note"}) == [
        GuessedColumn("prompt", "prompt", "When?"),
        GuessedColumn("completion", "completion", "On Friday."),
        GuessedColumn("comment", "Note", "x"),
    ]
    (tmp_path / "a.csv").write_text("prompt,completion,label,comment\na,b,,c\n")
    assert GuessedColumn("label", "label", "") in show_columns(str(tmp_path / "a.csv"), {})
    with pytest.raises(UserError, match=r"b\.jsonl: no column completion, comment; there are prompt"):
        show_columns(write("b.jsonl", {"prompt": "a"}), {})


@pytest.mark.parametrize(
    "record",
    [
        {"data": {"prompt": "a", "text": "b"}, "annotations": []},
        {"fields": {"prompt": "a", "text": "b"}, "responses": {}},
        {"prompt": "a", "text": "b", "label": [[0, 1, "poor"]]},
        {"id": "1", "prompt": "a", "completion": "b", "feedback": {"critic": "c"}},
    ],
    ids=["label studio", "argilla", "doccano", "schema"],
)
def test_records_with_fields_of_their_own_have_no_columns(write, record):
    assert show_columns(write("a.jsonl", record), {}) == []


def test_counts(write, tmp_path):
    path = write(
        "a.jsonl",
        ROW,
        ROW | {"comment": ""},
        ROW | {"completion": "In May.", "comment": '"budget committee" is wrong.'},
    )
    summary = import_comments(path, tmp_path / "out" / "f.jsonl", {}, {})
    assert (summary.rows, summary.examples, summary.with_feedback, len(summary.skipped)) == (3, 2, 2, 1)
    assert (summary.spans, summary.unmatched, summary.aligned, summary.unaligned) == (1, 1, 1, 1)
    (unread,) = summary.unread
    assert unread.startswith(f"{path}:3: the critique has no effect on the answer")
    assert len(list(read_examples(tmp_path / "out" / "f.jsonl"))) == 2


def test_an_import_that_fails_leaves_the_old_file(write, tmp_path):
    out = tmp_path / "f.jsonl"
    out.write_text("old")
    (tmp_path / "a.csv").write_bytes(b"prompt,completion,comment\n" + b"a,b,c\n" * 9999 + b"\xff,b,c\n")
    with pytest.raises(UserError, match="not UTF-8"):
        import_comments(str(tmp_path / "a.csv"), out, {}, {})
    summary = import_set("shepherd", write("b.jsonl", {}), out)
    assert summary.examples == 0
    assert out.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "b.jsonl", "f.jsonl"]
