"""`text2grad evaluate` with the tiny model, end to end."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from text2grad.cli.app import app
from text2grad.errors import UserError
from text2grad.schema import Example, read_examples, write_examples

Evaluate = Callable[..., Result]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "heldout.jsonl"
    write_examples(path, [Example(id=str(i), prompt=f"Say {i}.", reference="fox") for i in range(4)])
    return path


@pytest.fixture
def evaluate(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> Evaluate:
    monkeypatch.setenv("COLUMNS", "120")

    def run(*arguments: object) -> Result:
        given = ["evaluate", str(tiny_model), *map(str, arguments), "--max-tokens", "6", "--resamples", "100"]
        return CliRunner().invoke(app, given, catch_exceptions=False)

    return run


def test_answers_and_summary_are_written_and_shown(evaluate: Evaluate, data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "evaluated"
    done = evaluate(data, "-o", folder, "--critic", "support:VowelCritic")
    assert done.exit_code == 0, done.output
    for shown in (
        "Only 4 prompts: the intervals say little",
        "4 prompts",
        "critic's score",
        "ROUGE-L",
        "token F1",
        "exact match",
        str(folder),
    ):
        assert shown in done.output
    answers = list(read_examples(folder / "answers.jsonl"))
    assert [answer.id for answer in answers] == ["0", "1", "2", "3"]
    assert all(answer.completion and answer.feedback for answer in answers)
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["prompts"] == 4
    assert summary["metrics"]["words"]["n"] == 4
    with pytest.raises(UserError, match=r"answers\.jsonl exists; give another file, or --overwrite"):
        evaluate(data, "-o", folder)
    again = evaluate(data, "-o", folder, "--overwrite")
    assert again.exit_code == 0
    assert [a.completion for a in read_examples(folder / "answers.jsonl")] == [a.completion for a in answers]
    assert "critic's score" not in again.output


def test_several_samples_differ_and_are_averaged_per_prompt(evaluate: Evaluate, data: Path, tmp_path: Path) -> None:
    done = evaluate(data, "--samples", 3, "--limit", 2, "-o", tmp_path / "out", "--json")
    summary = json.loads(done.stdout)
    assert (summary["prompts"], summary["answers"], summary["temperature"]) == (2, 6, 1.0)
    answers = list(read_examples(tmp_path / "out" / "answers.jsonl"))
    assert [answer.meta["sample"] for answer in answers] == [0, 1, 2] * 2
    assert [answer.id for answer in answers] == ["0"] * 3 + ["2"] * 3
    assert len({answer.completion for answer in answers}) > 2
    mean = sum(len(answer.completion.split()) for answer in answers) / 6
    assert summary["metrics"]["words"]["mean"] == pytest.approx(mean)
    with pytest.raises(UserError, match="at temperature 0 are all the same"):
        evaluate(data, "--samples", 2, "--temperature", 0)


def test_programs_are_run(evaluate: Evaluate, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right, wrong = "def f(x):\n    return x + 1\n", "def f(x):\n    return x\n"
    monkeypatch.setattr(
        "text2grad.evaluate.complete_prompts", lambda *_, **__: [[number] for number in (1, 1, 0, 0, 0, 0)]
    )
    monkeypatch.setattr("text2grad.evaluate.decode", lambda ids, _: right if ids[0] else wrong)
    tests = "assert f(1) == 2\nassert f(5) == 6"
    write_examples(data, [Example(id=i, prompt=f"Write f ({i}).", tests=tests) for i in "ab"])
    done = evaluate(data, "--samples", 3, "-o", tmp_path / "out", "--json", "--pass-at", 1, "--pass-at", 2)
    metrics = json.loads(done.stdout)["metrics"]
    assert metrics["pass@1"]["mean"] == pytest.approx((2 / 3 + 0) / 2)
    assert metrics["pass@2"]["mean"] == pytest.approx((1 + 0) / 2)
    assert [a.meta["passed"] for a in read_examples(tmp_path / "out" / "answers.jsonl")] == [True] * 2 + [False] * 4
    untested = json.loads(evaluate(data, "--samples", 3, "--no-run-tests", "--json").stdout)["metrics"]
    assert list(untested) == ["words"]
    with pytest.raises(UserError, match="--pass-at 5 needs at least as many answers"):
        evaluate(data, "--pass-at", 5)


def test_columns_and_a_run_as_the_model(
    evaluate: Evaluate, tmp_path: Path, make_trainer: Callable[..., object]
) -> None:
    trainer = make_trainer(max_steps=1)
    trainer.train()
    trainer.save_model()
    (tmp_path / "questions.csv").write_text("question,answer\nWho?,nobody\n")
    given = ["--column", "prompt=question", "--column", "reference=answer", "--json", "--max-tokens", "5"]
    done = CliRunner().invoke(
        app, ["evaluate", str(tmp_path / "run"), str(tmp_path / "questions.csv"), *given], catch_exceptions=False
    )
    assert json.loads(done.stdout)["metrics"]["rouge_l"]["n"] == 1


def test_what_cannot_be_evaluated_is_reported(evaluate: Evaluate, data: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="every critique failed, last: the critic Broken raised LookupError"):
        evaluate(data, "--critic", "support:Broken")
    with pytest.raises(UserError, match='did you mean "grounding"'):
        evaluate(data, "--critic", "groundin")
    with pytest.raises(UserError, match="no such file"):
        evaluate(tmp_path / "nothing.jsonl")
    with pytest.raises(UserError, match="--pass-at needs examples with tests"):
        evaluate(data, "--pass-at", 1)
