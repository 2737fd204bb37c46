"""The commands, as a person types them: train, measure, use."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from reward_support import about_animals, tiny_reward_model, unlabelled
from typer.testing import CliRunner

from text2grad.cli.app import app
from text2grad.cli.reward_tables import metrics_table
from text2grad.data import summaries
from text2grad.errors import UserError
from text2grad.models.loading import load_tokenizer
from text2grad.reward_model.dataset import build_dataset
from text2grad.reward_model.familiarity import Familiarity
from text2grad.reward_model.inputs import InputSettings
from text2grad.schema import Example, Feedback, read_examples, write_examples

Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str | Path) -> Result:
        return CliRunner().invoke(app, ["reward", *map(str, arguments)])

    return run


@pytest.fixture
def feedback(tmp_path: Path) -> Path:
    path = tmp_path / "feedback.jsonl"
    failed = Example(id="failed", prompt="p", completion="x", feedback=Feedback.failure("c", "timeout"))
    write_examples(path, [*about_animals(12), failed])
    return path


@pytest.fixture
def model(tiny_model: Path, tmp_path: Path) -> Path:
    tiny_reward_model(tiny_model, inputs=InputSettings(max_length=200)).save_pretrained(tmp_path / "saved")
    return tmp_path / "saved"


def words(output: str) -> str:
    """Without table borders, colours and line ends."""
    return re.sub(r"[\s│┃]+", " ", re.sub(r"\x1b\[[0-9;]*m", "", output))


def test_train_eval_and_score(run: Run, tiny_model: Path, feedback: Path, tmp_path: Path) -> None:
    folder = tmp_path / "rm"
    options = ["max_steps=2", "bf16=false", "heldout_share=0.25", "logging_steps=1", "inputs={reading: once}"]
    trained = run(
        *("train", feedback, "-o", folder, "--model", tiny_model, "--batch-size", "4", "--learning-rate", "0.01"),
        *(part for option in options for part in ("--option", option)),
    )
    assert trained.exit_code == 0, trained.output
    said = words(trained.output)
    assert "step 2/2 loss" in said
    assert "skipped: failed feedback" in said
    assert f"Reward model: {folder}" in said
    settings = json.loads((folder / "training.json").read_text())["settings"]
    assert (settings["learning_rate"], settings["inputs"]["reading"]) == (0.01, "once")

    again = run("train", feedback, "-o", folder, "--model", tiny_model)
    assert "already holds a trained reward model" in str(again.exception)

    (tmp_path / "run").mkdir()
    for text in ('{"n": 1}', "[]", "3", "text"):
        (tmp_path / "run" / "evaluation.json").write_text(text)
        refused = run("eval", folder, feedback, "-o", tmp_path / "run")
        assert "evaluation.json is not of `reward eval` and would be overwritten" in str(refused.exception)
        assert (tmp_path / "run" / "evaluation.json").read_text() == text

    for _ in range(2):
        evaluated = run("eval", folder, feedback, "-o", tmp_path / "eval")
    assert evaluated.exit_code == 0, evaluated.output
    assert "12 completions" in words(evaluated.output)
    assert "100.0% parsed" in words(evaluated.output)
    metrics = json.loads((tmp_path / "eval" / "evaluation.json").read_text())
    assert metrics["examples"] == 12
    assert metrics["skipped"] == {"no gold feedback": 1}
    assert "<h1>Reward model rm</h1>" in (tmp_path / "eval" / "evaluation.html").read_text()

    scored = run("score", folder, feedback, "-o", tmp_path / "scored.jsonl", "--rewards", "spans")
    assert scored.exit_code == 0, scored.output
    assert "13 (13 new)" in words(scored.output)


def test_of_several_processes_one_prints(
    run: Run, tiny_model: Path, feedback: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "1")
    options = ("--option", "max_steps=1", "--option", "bf16=false")
    result = run("train", feedback, "-o", tmp_path / "rm", "--model", tiny_model, *options)
    assert result.exit_code == 0, result.output
    assert result.stdout == ""


def test_a_set_is_left_out_and_measured(run: Run, tiny_model: Path, feedback: Path, tmp_path: Path) -> None:
    other = tmp_path / "others.v2.jsonl"
    write_examples(other, about_animals(20)[12:])
    options = ("--option", "max_steps=1", "--option", "bf16=false", "--option", "heldout_share=0.25")
    model = ("--model", tiny_model)
    result = run("train", feedback, other, "-o", tmp_path / "rm", *model, "--leave-out", "others", *options)
    assert result.exit_code == 0, result.output
    said = words(result.output)
    assert "Left out of the training" in said
    assert "others: poor words" in said
    summary = json.loads((tmp_path / "rm" / "training.json").read_text())
    assert summary["left_out"]["others"]["examples"] == 8
    assert summary["train"]["examples"] + summary["heldout"]["examples"] == 12

    unknown = run("train", feedback, "-o", tmp_path / "x", *model, "--leave-out", "other")
    assert '"other" is not the name of a source; the sources are feedback' in str(unknown.exception)
    nothing = run("train", feedback, "-o", tmp_path / "x", *model, "--leave-out", "feedback")
    assert "leaves nothing to train on" in str(nothing.exception)
    namesake = tmp_path / "others.val.jsonl"
    namesake.write_bytes(other.read_bytes())
    ambiguous = run("train", feedback, other, namesake, "-o", tmp_path / "x", *model, "--leave-out", "others")
    assert f'"others" is the name of several sources ({other}, {namesake}); rename' in str(ambiguous.exception)


def test_scoring_says_how_many_completions_are_unfamiliar(run: Run, tiny_model: Path, tmp_path: Path) -> None:
    model = tiny_reward_model(tiny_model)
    parts = model.settings.inputs, model.settings.critique_format
    features = model.read_rows(build_dataset(about_animals(60), load_tokenizer(tiny_model), *parts))[2]
    model.familiarity = Familiarity.fit(features[:40], features[40:])
    model.save_pretrained(tmp_path / "rm")
    write_examples(tmp_path / "answers.jsonl", unlabelled(["dog fox cat hen", "def f(x):\n    return {'a': 1}[x]"]))
    result = run("score", tmp_path / "rm", tmp_path / "answers.jsonl", "-o", tmp_path / "scored.jsonl")
    assert "Unlike the training data: 1 of 2 completions (distance above 2" in words(result.output)
    distances = [example.feedback.distance for example in read_examples(tmp_path / "scored.jsonl") if example.feedback]
    assert sorted(distance is not None and distance > 2 for distance in distances) == [False, True]


def test_corrupt_makes_training_data(run: Run, tmp_path: Path) -> None:
    source, out = tmp_path / "right.jsonl", tmp_path / "corrupted.jsonl"
    write_examples(source, summaries.load("train"))
    result = run("corrupt", source, "-o", out, "--per-text", "1", "--clean-share", "0", "--seed", "3")
    assert result.exit_code == 0, result.output
    corrupted = list(read_examples(out))
    spans = [span for example in corrupted if example.feedback for span in example.feedback.spans]
    assert f"{len(corrupted)} examples with {len(spans)} faults: {out}" in words(result.output)
    said = out.read_bytes()
    refused = run("corrupt", source, "-o", out)
    assert f"{out} exists; give another file, or --overwrite" in str(refused.exception)
    assert out.read_bytes() == said
    assert run("corrupt", source, "-o", out, "--seed", "4", "--overwrite").exit_code == 0
    assert out.read_bytes() != said
    assert len(spans) > 80
    assert all(span.replacement is not None for span in spans)


def test_lora_makes_an_adapter(run: Run, tiny_model: Path, feedback: Path, tmp_path: Path) -> None:
    options = ("--option", "max_steps=1", "--option", "bf16=false", "--lora")
    result = run("train", feedback, "-o", tmp_path / "rm", "--model", tiny_model, *options)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "rm" / "adapter_config.json").is_file()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--option", "learning_rte=1"], 'reward train: unknown key "learning_rte"'),
        (["--option", "lm_weight"], "is not of the form name=value"),
        (["--resume"], "no checkpoint to resume from"),
    ],
)
def test_what_is_wrong_is_said(
    run: Run, tiny_model: Path, feedback: Path, tmp_path: Path, arguments: list[str], says: str
) -> None:
    result = run("train", feedback, "-o", tmp_path / "rm", "--model", tiny_model, *arguments)
    assert isinstance(result.exception, UserError)
    assert says in str(result.exception)


def test_scoring_continues_where_it_stopped(run: Run, model: Path, tmp_path: Path) -> None:
    source, out = tmp_path / "answers.jsonl", tmp_path / "scored.jsonl"
    answers = unlabelled([f"The fox jumps {i} times." for i in range(6)] + ["Q" * 150])
    write_examples(source, answers)
    whole = run("score", model, source, "-o", tmp_path / "whole.jsonl")
    assert whole.exit_code == 0, whole.output

    write_examples(source, answers[:4])
    assert "4 (4 new)" in words(run("score", model, source, "-o", out, "--batch-size", "2").output)
    write_examples(source, answers)
    again = run("score", model, source, "-o", out)
    assert "7 (3 new)" in words(again.output)
    assert "too long" in again.output
    one, other = ({e.id: e.feedback for e in read_examples(path)} for path in (out, tmp_path / "whole.jsonl"))
    assert one.keys() == other.keys()
    for name, feedback in one.items():
        assert feedback is not None
        assert (feedback.scores is None) == (name == "6")
        same = other[name]
        assert same is not None
        assert feedback.critique == same.critique
        assert [s[:2] for s in feedback.scores or []] == [s[:2] for s in same.scores or []]


def test_other_settings_are_other_feedback(run: Run, model: Path, tmp_path: Path) -> None:
    source, out = tmp_path / "answers.jsonl", tmp_path / "scored.jsonl"
    write_examples(source, unlabelled(["The fox jumps."]))
    run("score", model, source, "-o", out)
    assert "moved aside" in run("score", model, source, "-o", out, "--rewards", "spans").output
    (example,) = read_examples(out)
    assert example.feedback is not None
    assert example.feedback.scores is None


def test_the_floor_is_an_option_and_an_empty_answer_is_no_long_one(run: Run, model: Path, tmp_path: Path) -> None:
    source, high, low = (tmp_path / name for name in ("answers.jsonl", "high.jsonl", "low.jsonl"))
    write_examples(source, unlabelled(["The fox jumps.", ""]))
    said = run("score", model, source, "-o", high, "--option", "threshold=0.999").output
    assert "empty" in said
    assert "too long" not in said
    run("score", model, source, "-o", low, "--option", "threshold=0")
    scores = [next(read_examples(path)).feedback.scores or [] for path in (high, low)]  # type: ignore[union-attr]
    assert (len(scores[0]), len(scores[1])) == (0, 3)


def test_an_unknown_method_is_named(run: Run, model: Path, feedback: Path, tmp_path: Path) -> None:
    result = run("score", model, feedback, "-o", tmp_path / "out.jsonl", "--method", "telepathy")
    assert "reward model: method" in str(result.exception)
    assert isinstance(result.exception, UserError)


def test_serving_without_the_extra_is_explained(run: Run, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastapi", None)
    for name in [name for name in sys.modules if name.startswith("text2grad.reward_model.serving")]:
        monkeypatch.delitem(sys.modules, name)
    result = run("serve", model)
    assert isinstance(result.exception, UserError)
    assert str(result.exception) == 'reward serve needs fastapi and uvicorn: pip install "text2grad[serve]"'


def test_nothing_to_compare_with_is_an_error(run: Run, model: Path, tmp_path: Path) -> None:
    source = tmp_path / "answers.jsonl"
    write_examples(source, unlabelled(["The fox."]))
    result = run("eval", model, source)
    assert isinstance(result.exception, UserError)
    assert "no example has gold feedback to compare with" in str(result.exception)


def test_the_table_shows_the_metrics() -> None:
    ranked = {"frequency": 0.1, "average_precision": 0.4, "precision_at_recall_25": 0.5, "ece": 0.02}
    agreed = {"precision": 0.6, "recall": 0.3, "f1": 0.4}
    by_label = dict.fromkeys(("good", "poor"), ranked | agreed)
    metrics = {
        "examples": 3,
        "spans_per_completion": 1.5,
        "parse_rate": 0.5,
        "tokens": by_label,
        "words": dict.fromkeys(("good", "poor"), ranked),
        "spans": dict.fromkeys(("good", "poor"), agreed),
    }
    table = metrics_table(metrics)
    assert table.title == "3 completions; 1.50 spans per completion; 50.0% parsed"
    columns = [list(column.cells) for column in table.columns]
    assert columns[0] == ["poor tokens", "poor words", "poor spans", "good tokens", "good words", "good spans"]
    assert columns[2] == ["0.600", "", "0.600"] * 2
    assert columns[5] == ["0.400", "0.400", ""] * 2
    without_good = metrics | {"tokens": by_label | {"good": ranked | agreed | {"frequency": 0.0}}}
    assert list(metrics_table(without_good).columns[0].cells) == ["poor tokens", "poor words", "poor spans"]


@pytest.mark.parametrize("command", ["train", "eval", "score"])
def test_every_command_explains_itself(run: Run, command: str) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0
    assert f"Example: text2grad reward {command}" in words(result.output)


def test_reward_lists_its_commands(run: Run) -> None:
    listed = words(run("--help").output)
    for command in ("train", "eval", "score"):
        assert f" {command} " in listed
