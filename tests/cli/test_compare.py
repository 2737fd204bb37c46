"""`text2grad compare`: tables, JSON, and the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from rich.text import Text
from typer.testing import CliRunner

from text2grad.cli.app import app
from text2grad.cli.compare import comparison_table
from text2grad.critics.llm.safeguards import CostLedger
from text2grad.errors import UserError
from text2grad.schema import Example, Feedback, write_examples


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")


def compare(*arguments: object) -> Result:
    given = ["compare", *map(str, arguments), "--resamples", "100"]
    return CliRunner().invoke(app, given, catch_exceptions=False)


def answered(completion: str, score: float, name: str = "1") -> Example:
    said = Feedback(critic="c", critique="So.", score=score)
    return Example(id=name, prompt=f"Say {name}.", completion=completion, reference="a fox", feedback=said)


@pytest.fixture
def evaluated(tmp_path: Path) -> tuple[Path, Path]:
    folders = (tmp_path / "first", tmp_path / "second")
    for folder, text, score in zip(folders, ("a dog", "a fox"), (0.0, 1.0), strict=True):
        folder.mkdir()
        write_examples(folder / "answers.jsonl", [answered(text, score, name) for name in "123"])
        (folder / "summary.json").write_text(json.dumps({"model": str(tmp_path / f"run-{folder.name}")}))
    return folders


def test_evaluations_are_compared(evaluated: tuple[Path, Path], tmp_path: Path) -> None:
    write_examples(evaluated[1] / "answers.jsonl", [answered("a fox", 1.0, name) for name in "234"])
    page = tmp_path / "page.html"
    done = compare(*evaluated, "-o", page)
    assert done.exit_code == 0, done.output
    assert "second against first" in done.output
    assert "[+1.000, +1.000]" in done.output
    assert "2 answered prompts are not common to all" in done.output
    assert '<mark class="differs">' not in page.read_text()  # the script makes it, from data
    assert str(page) in done.output
    result = json.loads(compare(*evaluated, "--json").stdout)
    assert (result["baseline"], result["prompts"]) == ("first", 2)
    (second,) = result["compared"]
    assert second["metrics"]["score"]["difference"] == 1.0
    assert second["metrics"]["exact_match"] == {
        "before": 0.0,
        "after": 1.0,
        "difference": 1.0,
        "low": 1.0,
        "high": 1.0,
        "n": 2,
    }
    assert "Only 2 prompts: the intervals say little" in done.output
    assert "too few prompts" in page.read_text()
    with pytest.raises(UserError, match=r"page\.html exists"):
        compare(*evaluated, "-o", page)


def test_a_difference_of_few_prompts_is_not_bold() -> None:
    def is_bold(prompts: int) -> bool:
        metric = {"before": 0.0, "after": 1.0, "difference": 1.0, "low": 1.0, "high": 1.0, "n": prompts}
        table = comparison_table("a", "b", {"score": metric})
        return any(
            "bold" in str(cell.style) for column in table.columns for cell in column.cells if isinstance(cell, Text)
        )

    assert (is_bold(7), is_bold(8)) == (False, True)


def test_runs_are_compared_by_their_answers_after_training(tmp_path: Path) -> None:
    for name, completion in (("one", "a dog"), ("two", "a fox")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "metrics.jsonl").write_text('{"step": 1, "reward": 0.5}\n{"step": 2, "reward": 0.75}\n')
        sides = {side: {"completion": completion} for side in ("before", "after")}
        sides["before"]["completion"] = "before training"
        example = {"id": "1", "prompt": "Say 1.", "reference": "a fox", **sides}
        (folder / "evaluation.json").write_text(json.dumps({"n": 1, "examples": [example]}))
    done = compare(tmp_path / "one", tmp_path / "two", "-o", tmp_path / "page.html")
    assert done.exit_code == 0, done.output
    assert "ROUGE-L" in done.output
    assert "0.75" in (tmp_path / "page.html").read_text()
    (tmp_path / "two" / "evaluation.json").unlink()
    with pytest.raises(UserError, match="two has no answers; for a run without held-out prompts"):
        compare(tmp_path / "one", tmp_path / "two")
    (tmp_path / "one" / "evaluation.json").unlink()
    assert compare(tmp_path / "one", tmp_path / "two", "-o", tmp_path / "curves.html").exit_code == 0
    assert "There are no answers to compare" in (tmp_path / "curves.html").read_text()
    assert "only their curves can be compared" in compare(tmp_path / "one", tmp_path / "two").output
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(UserError, match="has no answers"):
        compare(tmp_path / "empty.jsonl", tmp_path / "empty.jsonl")


def test_curves_come_from_the_runs_of_evaluations(evaluated: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "run-second").mkdir()
    (tmp_path / "run-second" / "metrics.jsonl").write_text('{"step": 1, "reward": 0.123}\n')
    compare(*evaluated, "-o", tmp_path / "page.html")
    assert '"reward":[0.123]' in (tmp_path / "page.html").read_text()


def test_a_judge_is_asked_about_each_pair(
    evaluated: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Judge:
        ledger = CostLedger(price_in=1e6, price_out=0.0, max_cost=None)

        def __init__(self, **options: Any) -> None:
            assert options == {"model": "m", "base_url": "http://localhost:1/v1", "max_cost": 2}

        def judge(self, pairs: Any, on_progress: Any) -> list[str | None]:
            assert [(a.completion, b.completion) for a, b in pairs] == [("a dog", "a fox")] * 3
            self.ledger.add(3, 1)
            return ["second", "tie", None]

    monkeypatch.setattr("text2grad.critics.llm.judge.PairwiseJudge", Judge)
    options = ["--judge", "m", "--base-url", "http://localhost:1/v1", "--option", "max_cost=2"]
    done = compare(*evaluated, *options, "-o", tmp_path / "page.html")
    assert "Judge: second wins 1, first wins 0, ties 1, 1 failed" in done.output
    assert "Preference +0.500" in done.output
    assert "The judge cost 3.0000." in done.output
    page = (tmp_path / "page.html").read_text()
    assert "Preference +0.50, 95% interval" in page
    assert '"verdict":"second"' in page
    with pytest.raises(UserError, match="name one with --judge"):
        compare(*evaluated, "--base-url", "http://localhost:1/v1")


def test_what_cannot_be_compared_is_reported(evaluated: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="at least two"):
        compare(evaluated[0])
    with pytest.raises(UserError, match="neither a run, nor an evaluation"):
        compare(evaluated[0], tmp_path)
    (evaluated[1] / "summary.json").write_text("{")
    with pytest.raises(UserError, match=r"summary\.json is damaged"):
        compare(*evaluated)
