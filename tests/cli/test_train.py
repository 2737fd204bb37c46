"""`text2grad train` through the command line."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from text2grad.cli.app import app
from text2grad.errors import UserError
from text2grad.schema import Example, Feedback, Span, write_examples

SMALL = ["policy.per_device_train_batch_size=2", "policy.bf16=false", "policy.learning_rate=0.01"]


@pytest.fixture
def feedback(tmp_path):
    path = tmp_path / "feedback.jsonl"
    said = Feedback(critic="human", critique="No.", spans=[Span(start=0, end=2, label="poor")])
    write_examples(path, [Example(id=str(i), prompt=f"p{i}", completion="no, thanks", feedback=said) for i in range(4)])
    return path


def invoke(*arguments):
    return CliRunner().invoke(app, ["train", *map(str, arguments)], catch_exceptions=False)


def test_logged_feedback_trains_a_model_that_can_be_exported(feedback, tiny_model, tmp_path):
    run = tmp_path / "run"
    done = invoke("--feedback", feedback, "--model", tiny_model, "-o", run, "--epochs", 2, *SMALL)
    assert done.exit_code == 0, done.output
    metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert len(metrics) == 4  # two epochs of two steps
    assert (run / "report.html").is_file()
    assert f'text2grad generate {run} --prompt "..."' in done.output.replace("\n", "")
    assert f"text2grad evaluate {run} PROMPTS.jsonl" in done.output
    assert (run / "checkpoints" / "final" / "adapter_config.json").is_file()
    exported = CliRunner().invoke(app, ["export", str(run), "-o", str(tmp_path / "plain")], catch_exceptions=False)
    assert exported.exit_code == 0
    assert (tmp_path / "plain" / "model.safetensors").is_file()


def test_epochs_take_precedence_over_the_steps_of_the_file(feedback, tiny_model, tmp_path):
    (tmp_path / "run.yaml").write_text("policy: {max_steps: 7}\n")
    given = ("--feedback", feedback, "--model", tiny_model, "--config", tmp_path / "run.yaml", *SMALL)
    assert invoke(*given, "-o", tmp_path / "by file").exit_code == 0
    assert invoke(*given, "-o", tmp_path / "by epochs", "--epochs", 1).exit_code == 0
    steps = [len((tmp_path / name / "metrics.jsonl").read_text().splitlines()) for name in ("by file", "by epochs")]
    assert steps == [7, 2]


def test_steps_can_be_set_and_a_run_resumed(feedback, tiny_model, tmp_path):
    given = ("--feedback", feedback, "--model", tiny_model, "-o", tmp_path / "run", *SMALL)
    assert invoke(*given, "policy.max_steps=1").exit_code == 0
    assert invoke(*given, "policy.max_steps=3", "--resume").exit_code == 0
    assert len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()) == 3


@pytest.mark.parametrize("problem", ["folder", "critic", "prompts", "model"])
def test_what_is_wrong_is_said_before_the_model_is_loaded(feedback, tiny_model, tmp_path, problem):
    (tmp_path / "run").mkdir()
    changes = {
        "folder": ("already holds a run", []),
        "critic": ("unknown critic", ["--critic", "groundin", "--eval", feedback]),
        "prompts": ("no such file", ["--critic", "qa", "--eval", tmp_path / "none.jsonl"]),
        "model": ("runs/none: no such folder", ["--model", tmp_path / "runs/none"]),
    }
    if problem == "folder":
        (tmp_path / "run" / "metrics.jsonl").write_text("")
    said, options = changes[problem]
    done = CliRunner().invoke(
        app, ["train", "--feedback", *map(str, [feedback, "--model", tiny_model, "-o", tmp_path / "run", *options])]
    )
    assert said in str(done.exception)
    assert "Loading the model" not in done.output


def test_a_run_without_data_is_refused(tmp_path):
    with pytest.raises(UserError, match="nothing to train on"):
        invoke("-o", tmp_path / "run")


def test_an_evaluation_of_logged_feedback_needs_a_critic(feedback, tiny_model, tmp_path):
    with pytest.raises(UserError, match="need a critic, and logged feedback has none"):
        invoke("--feedback", feedback, "--model", tiny_model, "-o", tmp_path / "run", *SMALL, "policy.eval_steps=1")


@pytest.mark.parametrize("eval_steps", [None, 1])
def test_held_out_prompts_are_used_only_with_eval_steps(feedback, tiny_model, tmp_path, eval_steps):
    config = tmp_path / "run.yaml"
    config.write_text(
        f"critic: {{name: 'support:VowelCritic'}}\ndata: {{train: '{feedback}', eval: '{feedback}'}}\n"
        f"policy: {{max_steps: 1, max_completion_length: 4, eval_steps: {json.dumps(eval_steps)}}}\n"
    )
    done = invoke("--config", config, "--model", tiny_model, "-o", tmp_path / "run", *SMALL)
    assert done.exit_code == 0, done.output
    assert ("held-out score" in done.output) == (eval_steps is not None)
    assert (tmp_path / "run" / "evaluation.json").is_file() == (eval_steps is not None)
