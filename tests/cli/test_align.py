"""The command gives spans to comments that have none, and leaves the others alone."""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from text2grad.cli.align import align
from text2grad.schema import Example, Feedback, Span, read_examples, write_examples

ANSWER = "They met in Lyon on Friday to sign the lease."
SPAN = Span(start=0, end=4, label="good")


def record(name: str, critique: str, spans: list[Span] | None = None) -> Example:
    said = Feedback(critic="human", critique=critique, spans=spans or [])
    return Example(id=name, prompt="They met in Lyon on Monday.", completion=ANSWER, feedback=said)


@pytest.fixture
def aligned(tmp_path: Path) -> dict[str, Example]:
    source, out = tmp_path / "comments.jsonl", tmp_path / "feedback.jsonl"
    records = [
        record("quoted", 'It was not on "Friday".'),
        record("placed", "Well begun.", [SPAN]),
        record("vague", "The umbrella in Karachi is wrong."),
    ]
    write_examples(source, records)
    app = typer.Typer()
    app.command()(align)
    for _ in range(2):  # the second time there is nothing left to do
        result = CliRunner().invoke(app, [str(source), "-o", str(out)])
        assert result.exit_code == 0, result.output
    examples = list(read_examples(out))
    assert len(examples) == 3
    return {example.id: example for example in examples}


def words(example: Example) -> list[str]:
    assert example.feedback is not None
    return [ANSWER[span.start : span.end] for span in example.feedback.spans]


def test_what_a_comment_quotes_becomes_a_span(aligned: dict[str, Example]) -> None:
    assert words(aligned["quoted"]) == ["Friday"]


def test_spans_that_are_there_stay(aligned: dict[str, Example]) -> None:
    assert words(aligned["placed"]) == ["They"]


def test_a_comment_about_nothing_that_can_be_found_is_failed(aligned: dict[str, Example]) -> None:
    feedback = aligned["vague"].feedback
    assert feedback is not None
    assert feedback.status == "failed"
    assert feedback.critique == "The umbrella in Karachi is wrong."


@pytest.mark.parametrize("records", [[record("placed", "Well begun.", [SPAN])], [Example(id="1", prompt="p")]])
def test_without_anything_to_align_the_command_fails_and_writes_nothing(tmp_path: Path, records: list[Example]) -> None:
    source, out = tmp_path / "comments.jsonl", tmp_path / "feedback.jsonl"
    write_examples(source, records)
    app = typer.Typer()
    app.command()(align)
    result = CliRunner().invoke(app, [str(source), "-o", str(out)])
    assert result.exit_code == 1
    assert str(result.exception).startswith(f"{source}: nothing to align: no record has feedback with a critique and")
    assert result.output == ""
    assert not out.exists()


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("\n", "the file is empty; give JSON lines"),
        ('{"id": "1", "prompt": "p", "completion": "c", "comment": "Bad."}\n', "a comment; use `text2grad import "),
        ('{"id": "1", "prompt": "p", "completion": "c", "critique": "Bad."}\n', "a critique; use `text2grad import "),
    ],
)
def test_the_remedy_is_that_of_the_file(tmp_path: Path, content: str, error: str) -> None:
    source = tmp_path / "comments.jsonl"
    source.write_text(content)
    app = typer.Typer()
    app.command()(align)
    result = CliRunner().invoke(app, [str(source), "-o", str(tmp_path / "feedback.jsonl")])
    assert result.exit_code == 1
    assert str(result.exception).startswith(f"{source}: ")
    assert error in str(result.exception)
