"""`text2grad import` through the command line, and what follows it: report and train."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from text2grad.cli.app import app
from text2grad.errors import UserError
from text2grad.schema import read_examples

TABLE = """ID;User question;Model answer;Reviewer comment;Verdict
1;When do we meet?;We meet on Friday at noon in Rome.;"It is not on ""Friday"" but on Monday.";
1;When do we meet?;We meet on Friday at noon in Rome.;"""
TABLE += """Well said.;good
2;Who pays?;Ann pays everything.;"The word ""everything"" is wrong.";Fluff
3;Who pays?;Ann pays.;That is short;name;them
4;Who pays?;Ann pays.;"The ""lions"" are badly drawn.";
"""


def invoke(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)


@pytest.fixture
def comments(tmp_path):
    path = tmp_path / "comments.csv"
    path.write_text(TABLE, encoding="utf-8")
    return path


def test_a_table_becomes_feedback_and_a_page(comments, tmp_path):
    out = tmp_path / "feedback.jsonl"
    done = invoke("import", comments, "-o", out, "--label", "Fluff=poor")
    assert done.exit_code == 0, done.output
    first, second, third = read_examples(out)
    assert [(first.completion[s.start : s.end], s.label) for s in first.feedback.spans] == [
        ("Friday", "poor"),
        (first.completion, "good"),
    ]
    assert first.feedback.critique == 'It is not on "Friday" but on Monday.\nWell said.'
    assert [(second.completion[s.start : s.end], s.label) for s in second.feedback.spans] == [("everything", "poor")]
    assert (third.id, third.feedback.unmatched) == ("4", ["lions"])
    for shown in ("User question", "Model answer", "Reviewer comment", "Verdict", "skipped", "comments.csv:5: the row"):
        assert shown in done.output
    assert invoke("report", out).output.strip() == str(tmp_path / "feedback.html")


def test_comments_are_read_one_by_one(comments, tmp_path):
    comments.write_text(TABLE.replace("Well said.", "Rome is wrong."), encoding="utf-8")
    done = invoke("import", comments, "-o", tmp_path / "f.jsonl", "--label", "Fluff=poor")
    first, _, third = read_examples(tmp_path / "f.jsonl")
    # the row's own label counts, whatever the words say
    assert [(first.completion[s.start : s.end], s.label) for s in first.feedback.spans] == [
        ("Friday", "poor"),
        ("Rome", "good"),
    ]
    assert third.feedback.status == "failed"
    assert "words were not found" in done.output
    assert "not read" in done.output
    assert "comments.csv:6: the critique has no effect" in done.output


def test_an_unknown_label_skips_its_row_and_says_how_to_name_it(comments, tmp_path):
    done = invoke("import", comments, "-o", tmp_path / "f.jsonl")
    assert 'the meaning of label "Fluff" is unknown' in done.output
    assert len(list(read_examples(tmp_path / "f.jsonl"))) == 2


def test_columns_can_be_named(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('Frage,Antwort,Kommentar\nWann?,On Friday.,"Not ""Friday""."\n', encoding="utf-8")
    with pytest.raises(
        UserError, match=r"no column prompt, completion, comment; there are Frage, Antwort, Kommentar: name"
    ):
        invoke("import", path, "-o", tmp_path / "f.jsonl")
    named = ("--column", "prompt=Frage", "--column", "completion=Antwort", "--column", "comment=Kommentar")
    assert invoke("import", path, "-o", tmp_path / "f.jsonl", *named).exit_code == 0
    (example,) = read_examples(tmp_path / "f.jsonl")
    assert example.prompt == "Wann?"


def test_the_label_of_a_comment_that_cannot_be_read_judges_the_whole_answer(tmp_path):
    path, out = tmp_path / "kommentare.csv", tmp_path / "f.jsonl"
    rows = ("Das ist der falsche Tag.,Fluff", "Das ist der falsche Tag.,good", "Das ist der falsche Tag.,")
    path.write_text(
        "prompt,completion,comment,label\n" + "".join(f"Wann?,Am Freitag {i}.,{row}\n" for i, row in enumerate(rows))
    )
    done = invoke("import", path, "-o", out, "--label", "Fluff=poor")
    assert done.exit_code == 0, done.output
    poor, good, unlabelled = (example.feedback for example in read_examples(out))
    assert (poor.status, poor.score) == ("ok", -1.0)
    assert [(span.label, span.match) for span in good.spans] == [("good", "whole")]
    assert (unlabelled.status, unlabelled.score) == ("failed", None)
    assert poor.critique == "Das ist der falsche Tag."
    assert "kommentare.csv:2: the critique has no effect" in done.output
    assert '; its label "Fluff" judges the whole answer' in done.output


def test_a_file_without_any_usable_comment_is_not_written(tmp_path):
    path, out = tmp_path / "kommentare.csv", tmp_path / "f.jsonl"
    path.write_text("prompt,completion,comment\nWann?,Am Freitag.,Das ist der falsche Tag.\n")
    with pytest.raises(
        UserError, match=r"none of 1 completions has feedback that can be used, last: .*csv:2: the crit"
    ):
        invoke("import", path, "-o", out)
    assert not out.exists()


def test_a_quote_that_is_not_in_the_answer_is_named_with_its_line(tmp_path):
    path, out = tmp_path / "q.csv", tmp_path / "f.jsonl"
    path.write_text("prompt,completion,label,quote\nWho?,A b c,poor,b\nWhat?,A b c,poor,zzz\n")
    done = invoke("import", path, "-o", out)
    assert done.exit_code == 0, done.output
    assert 'q.csv:3: "zzz" is not in the completion' in done.output
    found, lost = (example.feedback for example in read_examples(out))
    assert (found.status, lost.status, lost.unmatched) == ("ok", "failed", ["zzz"])


def test_a_conversation_in_a_cell_is_a_prompt(tmp_path):
    turns = [
        {"role": "user", "content": "Hi."},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "When?"},
    ]
    line = {"messages": [*turns, {"role": "assistant", "content": "On Friday."}], "comment": 'Not on "Friday".'}
    (tmp_path / "a.jsonl").write_text(json.dumps(line) + "\n")
    cell = json.dumps(turns).replace('"', '""')
    (tmp_path / "b.csv").write_text(f'prompt,completion,comment\n"{cell}",On Friday.,"Not on ""Friday""."\n')
    for name in ("a.jsonl", "b.csv"):
        assert invoke("import", tmp_path / name, "-o", tmp_path / f"{name}.out").exit_code == 0
        (example,) = read_examples(tmp_path / f"{name}.out")
        assert [turn.model_dump() for turn in example.prompt] == turns
        assert example.completion == "On Friday."
        assert [(span.start, span.end) for span in example.feedback.spans] == [(3, 9)]


def test_a_feedback_set_by_name(tmp_path):
    rows = [{"id": 1, "question": "2 + 2?", "answer": "It is 5.", "feedback": '"5" is wrong.'}, {"id": 2}]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = invoke("import", "shepherd", tmp_path / "data.jsonl", "-o", tmp_path / "f.jsonl")
    assert done.exit_code == 0
    (example,) = read_examples(tmp_path / "f.jsonl")
    assert [(span.start, span.end) for span in example.feedback.spans] == [(6, 7)]  # found, not in the set
    assert "data.jsonl:2: no field question" in done.output


def test_a_score_survives_a_critique_that_cannot_be_aligned(tmp_path):
    row = {
        "context": [{"role": "user", "content": "Hi"}],
        "response1": "Yes.", "feedback1": ["The response is mostly helpful. Quite terse, though."],
        "response2": "No.", "feedback2": ["Quite terse, though."],
    }  # fmt: skip
    (tmp_path / "data.jsonl").write_text(json.dumps(row) + "\n")
    invoke("import", "helpsteer3", tmp_path / "data.jsonl", "-o", tmp_path / "f.jsonl")
    scored, unscored = read_examples(tmp_path / "f.jsonl")
    assert (scored.feedback.status, scored.feedback.score) == ("ok", 0.5)
    assert unscored.feedback.status == "failed"


def test_the_comments_themselves_are_never_overwritten(comments, tmp_path):
    before = comments.read_bytes()
    (tmp_path / "link.csv").symlink_to(comments)
    for out in (comments, tmp_path / "link.csv"):
        with pytest.raises(UserError, match="is read by this command, and would be lost; give another file"):
            invoke("import", comments, "-o", out, "--overwrite")
    assert comments.read_bytes() == before


def test_a_cell_that_is_nested_too_deeply_costs_no_other_row(tmp_path):
    path, out = tmp_path / "c.csv", tmp_path / "f.jsonl"
    deep = '[{""labels"": ' + "[" * 100_000
    path.write_text(f'prompt,completion,comment\n"{deep}",b,c\nWho pays?,Ann pays.,"Not ""Ann""."\n')
    done = invoke("import", path, "-o", out)
    assert done.exit_code == 0, done.output
    assert [example.prompt for example in read_examples(out)] == ["Who pays?"]


def test_what_cannot_be_imported_is_a_sentence(comments, tmp_path):
    out = tmp_path / "f.jsonl"
    out.write_text("mine")
    with pytest.raises(UserError, match=r"f\.jsonl exists; give another file, or --overwrite"):
        invoke("import", comments, "-o", out)
    assert out.read_text() == "mine"
    assert invoke("import", comments, "-o", out, "--overwrite").exit_code == 0
    new = tmp_path / "new.jsonl"
    with pytest.raises(UserError, match="ragtruth: give its file too"):
        invoke("import", "ragtruth", "-o", new)
    with pytest.raises(UserError, match='"Fluff" is not of the form name=value, as in --label Fluff=poor'):
        invoke("import", comments, "-o", new, "--label", "Fluff")
    with pytest.raises(UserError, match="--column and --label are for tables"):
        invoke("import", "shepherd", comments, "-o", new, "--column", "prompt=a")
    with pytest.raises(UserError, match="--no-align is for feedback sets"):
        invoke("import", comments, "-o", new, "--no-align")
    (tmp_path / "bad.jsonl").write_text("")
    with pytest.raises(UserError, match=r"bad\.jsonl: there are no rows; .*new\.jsonl is not written"):
        invoke("import", tmp_path / "bad.jsonl", "-o", new)
    (tmp_path / "bad.jsonl").write_text("{}\n")
    with pytest.raises(UserError, match=r"bad\.jsonl: no row could be imported; .*new\.jsonl is not written"):
        invoke("import", "shepherd", tmp_path / "bad.jsonl", "-o", new)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.jsonl", "comments.csv", "f.jsonl"]


@pytest.mark.parametrize(
    "command", [("annotate", "--critic", "human", "-o"), ("align", "-o"), ("train", "-o"), ("report",)]
)
def test_other_commands_say_what_to_do_with_a_table(comments, tmp_path, command):
    name, *options = command
    source = ("--feedback", comments) if name == "train" else (comments,)
    written = (tmp_path / "out.jsonl",) if options else ()
    with pytest.raises(UserError, match=r"comments\.csv: a table, not JSON lines; `text2grad import .*comments\.csv"):
        invoke(name, *source, *options, *written)


def test_from_a_table_to_a_trained_model_that_is_evaluated(comments, tiny_model, tmp_path):
    feedback, run = tmp_path / "feedback.jsonl", tmp_path / "run"
    invoke("import", comments, "-o", feedback)
    (tmp_path / "heldout.jsonl").write_text('{"id": "h", "prompt": "Where do we meet?"}\n')
    small = ("policy.per_device_train_batch_size=2", "policy.bf16=false", "policy.max_completion_length=4")
    evaluation = ("--eval", tmp_path / "heldout.jsonl", "--critic", "support:VowelCritic")
    done = invoke("train", "--feedback", feedback, "--model", tiny_model, "-o", run, "--epochs", 1, *evaluation, *small)
    assert done.exit_code == 0, done.output
    assert "Feedback on 1 of 2 completions is usable." in done.output
    assert "1 not: failed: the critique has no effect" in done.output
    assert json.loads((run / "evaluation.json").read_text())["n"] == 1
    card = (run / "checkpoints" / "final" / "README.md").read_text()
    assert "logged feedback" in card
    assert "evaluated by" in card


def test_what_a_table_holds_cannot_command_the_terminal(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('\x1b]0;x\x07 question,[red]answer,comment\na\x1b[2J,On Friday.,"Not ""Friday""."\nb,,\x1b[31mx\n')
    done = invoke("import", path, "-o", tmp_path / "f.jsonl")
    assert done.exit_code == 0, done.output
    assert "[red]answer" in done.output
    assert "\x1b" not in done.output
    assert "\x07" not in done.output
