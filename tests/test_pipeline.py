"""Whole runs: training, evaluation, early stopping, resuming, export."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console
from support import PROMPTS, Silent
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from transformers import AutoModelForCausalLM

from text2grad.checkpoint.export import export
from text2grad.checkpoint.markdown import split_front_matter
from text2grad.cli.display import TerminalDisplay
from text2grad.config.run import load_config
from text2grad.errors import UserError
from text2grad.pipeline import run
from text2grad.schema import Example, write_examples

HELD_OUT = [Example(id=f"h{i}", prompt=f"Say {i}.", reference="fox") for i in range(4)]


@pytest.fixture
def config(tmp_path: Path, tiny_model: Path) -> Path:
    """A run that learns next to nothing, so that its first evaluation is the best."""
    write_examples(tmp_path / "prompts.jsonl", PROMPTS)
    write_examples(tmp_path / "heldout.jsonl", HELD_OUT)
    path = tmp_path / "run.yaml"
    path.write_text(
        f"""
model: {{name: "{tiny_model}", lora: {{r: 2, alpha: 4}}}}
data: {{train: "{tmp_path}/prompts.jsonl", eval: "{tmp_path}/heldout.jsonl"}}
critic: {{name: "support:VowelCritic"}}
evaluate: {{resamples: 50}}
policy:
  max_steps: 9
  per_device_train_batch_size: 2
  max_completion_length: 6
  learning_rate: 1.0e-12
  bf16: false
  report_to: tensorboard
  eval_steps: 1
  max_eval_samples: 3
  load_best_model_at_end: true
  early_stopping_patience: 2
output_dir: "{tmp_path}/run"
"""
    )
    return path


def test_a_run_is_displayed_stops_early_and_keeps_its_best_checkpoint(
    config: Path, tmp_path: Path, tiny_model: Path
) -> None:
    screen = io.StringIO()
    with TerminalDisplay(Console(file=screen, width=200)) as display:
        folder = run(load_config(config), display)
    shown = screen.getvalue()
    assert "step 3/9" in shown
    assert "step 4/9" not in shown
    assert "step 3  held-out score" in shown
    assert "ROUGE-L" in shown

    metrics = [json.loads(line) for line in folder.metrics.read_text().splitlines()]
    assert [m["step"] for m in metrics] == [1, 2, 3]
    assert [m["eval/samples"] for m in metrics] == [3, 3, 3]
    assert len({m["eval/score"] for m in metrics}) == 1
    events = EventAccumulator(str(folder.trackers / "text2grad")).Reload()
    logged = {event.step: event.value for event in events.Scalars("eval/score")}
    assert logged == pytest.approx({m["step"]: m["eval/score"] for m in metrics})

    assert json.loads(folder.evaluation.read_text())["n"] == 4  # the final evaluation runs on all examples
    assert '"eval/score":[' in folder.report.read_text()
    weights = [place / "adapter_model.safetensors" for place in (folder.best, folder.final)]
    assert weights[0].read_bytes() == weights[1].read_bytes()

    export(folder.root, tmp_path / "plain")
    AutoModelForCausalLM.from_pretrained(tmp_path / "plain")
    adapter, plain = (split_front_matter((p / "README.md").read_text()) for p in (folder.final, tmp_path / "plain"))
    assert adapter[1] == plain[1]
    assert (adapter[0]["library_name"], plain[0]["library_name"]) == ("peft", "transformers")
    for line in (
        "| critic | `support:VowelCritic` |",
        "| steps | `1` |",
        "Held-out completions, n = 4",
        "after step 1 (evaluations: 1)",
    ):
        assert line in plain[1]
    assert str(tmp_path) not in plain[1]
    assert str(tiny_model) not in plain[1]


def test_an_early_stopped_run_stops_again_when_it_is_resumed(config: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = run(load_config(config, ["policy.report_to=none"]), Silent())
    before = folder.final.joinpath("adapter_model.safetensors").read_bytes()
    caplog.clear()
    # report_to and early_stopping_patience may change when a run is resumed.
    run(load_config(config), Silent(), resume=True)
    assert "early stopping" in caplog.text
    assert len(folder.metrics.read_text().splitlines()) == 3
    assert folder.final.joinpath("adapter_model.safetensors").read_bytes() == before
    run(load_config(config, ["policy.early_stopping_patience=3", "policy.max_steps=5"]), Silent(), resume=True)
    assert len(folder.metrics.read_text().splitlines()) == 4
    with pytest.raises(UserError, match="max_eval_samples"):
        run(load_config(config, ["policy.max_eval_samples=2"]), Silent(), resume=True)


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["data.eval=null"], "no held-out prompts"),
        (["policy.eval_steps=null"], "load_best_model_at_end needs the held-out score"),
        (["policy.eval_steps=null", "policy.load_best_model_at_end=false"], "early_stopping_patience needs"),
        (["policy.report_to=tensorbord"], "report_to"),
    ],
)
def test_invalid_settings_are_rejected_with_a_remedy(config: Path, overrides: list[str], said: str) -> None:
    with pytest.raises(UserError, match=said):
        run(load_config(config, overrides), Silent())


def test_leftover_completions_of_another_run_are_not_reused(config: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    write_examples(tmp_path / "run" / "before.jsonl", [Example(id="stale", prompt="Other.", completion="x")])
    folder = run(load_config(config, ["policy.report_to=none", "policy.max_steps=1"]), Silent())
    compared = json.loads(folder.evaluation.read_text())["examples"]
    assert [example["id"] for example in compared] == [example.id for example in HELD_OUT]
