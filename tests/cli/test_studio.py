"""The command: what it exports, what it refuses, and that it starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from studio_support import COMPLETIONS, StudioProcess, write_answers
from typer.testing import CliRunner

from text2grad.cli.app import app
from text2grad.errors import UserError
from text2grad.schema import Feedback, Span, read_examples
from text2grad.studio.project import Project


def run(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, ["studio", *map(str, arguments)])
    if isinstance(result.exception, UserError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_annotations_are_exported_without_a_server(tmp_path: Path) -> None:
    answers = write_answers(tmp_path)
    project = Project(answers)
    start = COMPLETIONS["plain"].index("Friday")
    feedback = Feedback(critic="human:Mia", spans=[Span(start=start, end=start + 6, label="poor")])
    project.store.save(project.keys[0], project.examples[0], "Mia", 0, "done", feedback)
    project.close()
    out = tmp_path / "out.jsonl"
    assert f"1 answers with feedback: {out}" in run(answers, "--export", out)
    (example,) = read_examples(out)
    assert example.feedback == feedback
    with pytest.raises(UserError, match=r"is not written: no answer was marked by Tom in the studio"):
        run(answers, "--export", out, "--annotator", "Tom", "--overwrite")
    assert list(read_examples(out)) == [example]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["nowhere.jsonl"], "no such file or folder"),
        ([".", "--export", "x.jsonl"], "name the file"),
        (["answers.jsonl", "--export", "x", "--format", "xml"], "choose one of feedback"),
        ([".", "--store", "x.sqlite"], "leave it out"),
        (["answers.jsonl", "--column", "prompt"], "name=value"),
        (["answers.jsonl", "--critic", "groundin"], 'did you mean "grounding"'),
        (["answers.jsonl", "--host", "not a host"], "cannot listen"),
    ],
)
def test_mistakes_are_explained(
    arguments: list[str], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_answers(tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=reason):
        run(*arguments)


def test_other_machines_need_the_token_that_is_printed(tmp_path: Path) -> None:
    server = StudioProcess(write_answers(tmp_path), "--host", "0.0.0.0")
    try:
        assert "#token=" in server.url
        assert len(server.url.partition("#token=")[2]) >= 32
    finally:
        server.stop()


@pytest.mark.parametrize("name", ["answers.jsonl", "answers.jsonl.studio.sqlite", "kept.db"])
def test_an_export_does_not_replace_what_the_studio_reads(tmp_path: Path, name: str) -> None:
    source = write_answers(tmp_path)
    before = source.read_bytes()
    with pytest.raises(UserError, match="give another file to export to"):
        run(source, "--store", tmp_path / "kept.db", "--export", tmp_path / name, "--overwrite")
    assert source.read_bytes() == before


def test_an_export_replaces_a_file_only_on_request(tmp_path: Path) -> None:
    source, out = write_answers(tmp_path), tmp_path / "mine.txt"
    out.write_text("my own")
    with pytest.raises(UserError, match="--overwrite"):
        run(source, "--export", out)
    assert out.read_text() == "my own"
