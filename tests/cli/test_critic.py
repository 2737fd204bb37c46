"""`text2grad critic check`: which critic, which data, the table and the exit code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from text2grad.cli.critic import critic as commands
from text2grad.errors import UserError
from text2grad.schema import Example, write_examples

# A user's own module in the working folder.
OWN = """
from text2grad.schema import Feedback


class Own:
    def __init__(self, likes="right"):
        self.likes = likes

    def critique(self, examples):
        if self.likes == "length":
            return [Feedback(critic="own", score=len(e.completion) / 1e4) for e in examples]
        return [Feedback(critic="own", score=1.0 if e.completion.strip() == e.reference else -1.0) for e in examples]
"""

Check = Callable[..., Result]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    words = ["oak", "elm", "ash", "fir"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("own.py").write_text(OWN)
    Path("run.yaml").write_text("critic:\n  name: own:Own\n  options: {likes: length}\n")
    write_examples("prompts.jsonl", (Example(id=w, prompt=f"Name a tree like {w}.", reference=w) for w in words))
    write_examples("answers.jsonl", (Example(id=w, prompt="", completion=w) for w in words[:2]))
    monkeypatch.setenv("COLUMNS", "120")

    def check(*arguments: str) -> Result:
        return CliRunner().invoke(commands, ["check", *arguments])

    return check


def test_a_sound_critic_passes(check: Check) -> None:
    result = check("own:Own", "prompts.jsonl")

    assert result.exit_code == 0, result.output
    assert "4 examples" in result.output
    assert "Passed: none of" in result.output
    assert "There are no completions to compare with" in result.output


def test_a_critic_that_can_be_gamed_fails_with_the_kinds_that_do(check: Check) -> None:
    result = check("own:Own", "prompts.jsonl", "--option", "likes=length", "--answers", "answers.jsonl")

    assert result.exit_code == 1
    assert "2 examples" in result.output  # those with an answer
    assert 'Problem: "prompt copied" (the prompt) scores' in result.output
    assert "Do not train with this critic yet" in result.output


def test_a_critic_that_raises_gets_its_reason_and_no_table(check: Check) -> None:
    Path("broken.py").write_text("class Broken:\n    def critique(self, examples):\n        raise ValueError('no')\n")

    result = check("broken:Broken", "prompts.jsonl", "--answers", "answers.jsonl")

    assert result.exit_code == 1
    assert "Problem: Every critique failed: " in result.output
    assert "There are no completions to compare with" not in result.output
    assert "furthest ahead" not in result.output


def test_a_critic_that_fails_on_honest_answers_alone_does_not_pass(check: Check) -> None:
    Path("shy.py").write_text(
        "from text2grad.schema import Feedback\n\n\nclass Shy:\n    def critique(self, examples):\n"
        "        return [self.one(e) for e in examples]\n\n    def one(self, e):\n"
        "        if e.completion.strip() == e.reference:\n            return Feedback.failure('shy', 'no')\n"
        "        return Feedback(critic='shy', score=len(e.completion) / 1e4)\n"
    )

    result = check("shy:Shy", "prompts.jsonl")

    assert result.exit_code == 1
    assert "Problem: Every critique of an honest answer failed" in result.output


def test_the_critic_of_a_run_is_found_in_its_configuration(check: Check) -> None:
    assert check("run.yaml", "prompts.jsonl").exit_code == 1
    assert check("run.yaml", "prompts.jsonl", "--option", "likes=right").exit_code == 0
    assert "source fragments" in check("quickstart", "summaries", "--limit", "2").output


def test_examples_are_limited(check: Check) -> None:
    assert "3 examples" in check("own:Own", "prompts.jsonl", "--limit", "3").output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope", "prompts.jsonl"], 'unknown critic "nope"'),
        (["own:Own", "missing.jsonl"], "missing.jsonl: no such file"),
        (["own:Own", "prompts.jsonl", "--answers", "other.jsonl"], "other.jsonl: no record has the id of an example"),
    ],
)
def test_errors_are_sentences(check: Check, arguments: list[str], message: str) -> None:
    write_examples("other.jsonl", [Example(id="other", prompt="", completion="yes")])
    error = check(*arguments).exception
    assert isinstance(error, UserError)
    assert message in str(error)
