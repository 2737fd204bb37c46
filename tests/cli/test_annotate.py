"""`text2grad annotate`: options, the summary, errors and interruptions."""

from __future__ import annotations

import gzip
import io
import json
import re

import pytest
import typer
from typer.testing import CliRunner

from text2grad.annotate.summary import Summary
from text2grad.cli.annotate import annotate, count_lines, summary_table
from text2grad.cli.console import Console
from text2grad.errors import UserError
from text2grad.schema import Example, read_examples, write_examples

# A user's own module in the working folder.
REMARK = """
from text2grad.errors import UserError
from text2grad.schema import Feedback, Span


class Remark:
    def __init__(self, word="hm", most=99, model=""):
        self.word, self.most, self.model = word, most, model

    def critique(self, examples):
        if int(examples[0].id) >= self.most:
            raise UserError("the critic is offline; start it")
        if self.word == "stop":
            raise KeyboardInterrupt
        if self.word == "crash":
            return [{}[example.id] for example in examples]
        span = Span(start=0, end=2, label="good")
        return [Feedback(critic="remark", critique=f"{self.word} {self.model}", spans=[span]) for _ in examples]
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    source = tmp_path / "data.jsonl"
    write_examples(source, (Example(id=str(i), prompt="p", completion="four") for i in range(20)))
    (tmp_path / "remark.py").write_text(REMARK)
    monkeypatch.syspath_prepend(tmp_path)
    app = typer.Typer()
    app.command()(annotate)

    def run(*options):
        out = tmp_path / "feedback.jsonl"
        return CliRunner().invoke(app, [str(source), "--critic", "remark:Remark", "-o", str(out), *options]), out

    return run


def test_options_reach_the_critic_and_the_summary_is_shown(run):
    result, out = run("--llm-model", "m", "--option", "word=well", "--option", "most=50")
    assert result.exit_code == 0, result.output
    assert {example.feedback.critique for example in read_examples(out)} == {"well m"}
    for row in ("20 (20 new)", "spans per completion", "1.00", "50.0%", "unmatched quotes", "feedback.jsonl"):
        assert row in result.output.replace("\n", "")


def test_without_spans_there_is_no_confidence():
    console = Console(record=True, file=io.StringIO())
    console.print(summary_table(Summary()))
    assert re.search(r"mean confidence of spans\W+–", console.export_text())


def test_finished_records_are_kept_if_the_critic_fails(run):
    result, out = run("--option", "most=10", "--batch-size", "5")
    assert isinstance(result.exception, UserError)
    assert "10 (10 new)" in result.output
    assert len(out.read_text().splitlines()) == 10


def test_ctrl_c_says_how_to_continue(run):
    result, _ = run("--option", "word=stop")
    assert result.exit_code == 130
    assert "the same command continues from here" in result.output


@pytest.mark.parametrize("option", ["word", "=x", "wo rd=x"])
def test_a_malformed_option_is_named(run, option):
    result, _ = run("--option", option)
    assert str(result.exception) == f'--option "{option}" is not of the form name=value'


def test_an_option_that_is_not_yaml_is_named(run):
    result, _ = run("--option", "word=[a")
    assert str(result.exception) == '--option "word=[a": the value is not valid YAML; put quotes around it'


def test_a_missing_source_is_named(tmp_path):
    with pytest.raises(UserError, match="no such file"):
        count_lines(tmp_path / "nowhere.jsonl")


def test_lines_are_counted(tmp_path):
    path = tmp_path / "lines"
    path.write_text(json.dumps({}) + "\n" + "\n" * 3)
    assert count_lines(path) == 4


def test_a_torn_gzip_file_is_named(tmp_path):
    path = tmp_path / "torn.jsonl.gz"
    path.write_bytes(gzip.compress(b"{}\n" * 99)[:-9])
    with pytest.raises(UserError, match=r"torn\.jsonl\.gz: not a complete gzip file"):
        count_lines(path)


def test_if_all_feedback_fails_the_command_fails_with_the_reason(run):
    result, out = run("--option", "word=crash")
    assert result.exit_code == 1
    assert isinstance(result.exception, UserError)
    said = str(result.exception)
    assert "data.jsonl failed, last: the critic Remark raised KeyError: '0' (remark.py, line " in said
    assert said.endswith("; fix the cause and repeat the command with --retry-failed")
    assert "20 (20 new)" in result.output
    assert {example.feedback.status for example in read_examples(out)} == {"failed"}
    result, _ = run("--option", "word=crash")  # again, with nothing to do
    assert result.exit_code == 1


@pytest.mark.parametrize("text", ["", "\n\n", "{}\n", "not JSON\n", '{"id": "1"}\n'])
def test_bad_input_prints_no_table_and_leaves_no_file(run, tmp_path, text):
    (tmp_path / "data.jsonl").write_text(text)
    result, out = run()
    assert result.exit_code == 1
    assert str(result.exception).startswith(f"{tmp_path / 'data.jsonl'}:")
    assert result.output == ""
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix == ".jsonl") == ["data.jsonl"]
    assert not out.exists()


def test_repeated_records_are_shown(run, tmp_path):
    lines = (tmp_path / "data.jsonl").read_text()
    (tmp_path / "data.jsonl").write_text(lines * 3)
    for _ in range(2):
        result, out = run()
        assert "repeated in the source, annotated once" in result.output
        assert "40" in result.output
        assert len(out.read_text().splitlines()) == 20
