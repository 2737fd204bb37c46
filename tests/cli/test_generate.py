"""`text2grad generate`: prompts, files of prompts, and conversations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from text2grad.cli.app import app
from text2grad.cli.console import Console
from text2grad.cli.generate import chat
from text2grad.errors import UserError
from text2grad.schema import Example, Message, read_examples, write_examples
from text2grad.text.printable import printable


def generate(model: Path | str, *arguments: object, stdin: str | None = None) -> Result:
    given = ["generate", str(model), *map(str, arguments), "--max-tokens", "6"]
    return CliRunner().invoke(app, given, input=stdin, catch_exceptions=False)


def test_a_prompt_is_answered_the_same_way_wherever_it_comes_from(tiny_model: Path, tmp_path: Path) -> None:
    write_examples(tmp_path / "prompts.jsonl", [Example(id="a", prompt="Say a word."), Example(id="b", prompt="Go.")])
    asked = generate(tiny_model, "--prompt", "Say a word.", "--prompt", "Go.", "--json")
    first, second = (json.loads(line) for line in asked.stdout.splitlines())
    assert (first["prompt"], second["prompt"]) == ("Say a word.", "Go.")
    assert generate(tiny_model, stdin="Say a word.").stdout.strip() == printable(first["completion"]).strip()
    done = generate(tiny_model, "--file", tmp_path / "prompts.jsonl", "-o", tmp_path / "answers.jsonl")
    assert done.exit_code == 0
    answers = list(read_examples(tmp_path / "answers.jsonl"))
    assert [a.id for a in answers] == ["a", "b"]
    assert [a.completion for a in answers] == [first["completion"], second["completion"]]
    with pytest.raises(UserError, match=r"answers\.jsonl exists"):
        generate(tiny_model, "--file", tmp_path / "prompts.jsonl", "-o", tmp_path / "answers.jsonl")


def test_columns_of_a_file_can_be_named(tiny_model: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("Frage,Thema\nWann?,Zeit\n")
    with pytest.raises(
        UserError, match=r"no column prompt; there are Frage, Thema: name it, .* or --column prompt=NAME"
    ):
        generate(tiny_model, "--file", tmp_path / "a.csv", "-o", tmp_path / "b.jsonl")
    done = generate(tiny_model, "--file", tmp_path / "a.csv", "--column", "prompt=Frage", "-o", tmp_path / "b.jsonl")
    assert "1 answer:" in done.stderr
    (answer,) = read_examples(tmp_path / "b.jsonl")
    assert (answer.prompt, answer.meta) == ("Wann?", {"Thema": "Zeit"})
    with pytest.raises(UserError, match="--column is for the data of --file"):
        generate(tiny_model, "--prompt", "x", "--column", "prompt=Frage")


def test_samples_and_system_messages(tiny_model: Path) -> None:
    lines = generate(tiny_model, "--prompt", "Go.", "--samples", 3, "--system", "Be brief.", "--json").stdout
    answers = [json.loads(line) for line in lines.splitlines()]
    assert len({answer["completion"] for answer in answers}) > 1
    assert [message["role"] for message in answers[0]["prompt"]] == ["system", "user"]


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("runs").mkdir()
    with pytest.raises(UserError, match="runs/nothing: no such folder"):
        generate("runs/nothing", "--prompt", "Hi")


def test_what_does_not_fit_together_is_refused(tiny_model: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="give either --prompt or --file"):
        generate(tiny_model, "--prompt", "x", "--file", "y")
    with pytest.raises(UserError, match="--file needs a file for the answers"):
        generate(tiny_model, "--file", "y")
    with pytest.raises(UserError, match='prompt of example "1" is empty'):
        generate(tiny_model, stdin=" ")


def test_a_conversation_keeps_its_history_until_it_is_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = iter(["hello", "", "again", "too long", "/reset", "new"])
    heard: list[list[str]] = []

    def respond(said: list[Message]) -> str:
        heard.append([message.content for message in said])
        if said[-1].content == "too long":
            raise UserError("the prompt has too many tokens")
        return f"answer {len(heard)}"

    def read(*_: object, **__: object) -> str:
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    console = Console(record=True, width=100)
    monkeypatch.setattr(console, "input", read)
    chat(console, respond, system="Be brief.")
    assert heard == [
        ["Be brief.", "hello"],
        ["Be brief.", "hello", "answer 1", "again"],
        ["Be brief.", "hello", "answer 1", "again", "answer 2", "too long"],
        ["Be brief.", "new"],
    ]
    said = console.export_text()
    assert "Error: the prompt has too many tokens" in said
    assert "answer 4" in said
