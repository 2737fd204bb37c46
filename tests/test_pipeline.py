"""Whole runs: training, evaluation, early stopping, resuming, export."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import Any

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
from text2grad.report.read import read_run
from text2grad.schema import Example, write_examples
from text2grad.trainer.trainer import Text2GradTrainer

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
    for phase in ("Generating", "Critiquing"):
        for when in ("before", "after"):
            assert f"{phase} held-out completions {when} training" in shown
    assert "ROUGE-L" in shown

    metrics = [json.loads(line) for line in folder.metrics.read_text().splitlines()]
    assert [m["step"] for m in metrics] == [1, 2, 3]
    assert [m["eval/samples"] for m in metrics] == [3, 3, 3]
    assert len({m["eval/score"] for m in metrics}) == 1
    events = EventAccumulator(str(folder.trackers / "text2grad")).Reload()
    logged = {event.step: event.value for event in events.Scalars("eval/score")}
    assert logged == pytest.approx({m["step"]: m["eval/score"] for m in metrics})

    assert json.loads(folder.evaluation.read_text())["n"] == 3  # max_eval_samples holds before and after training too
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
        "Held-out completions, n = 3",
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


ONE_STEP = ["policy.report_to=none", "policy.max_steps=1", "policy.early_stopping_patience=null"]


@pytest.mark.parametrize("name", ["config.yaml", "before.jsonl", "thesis.tex", "checkpoints/best/weights"])
def test_a_folder_with_files_of_others_is_refused_and_left_alone(config: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / "run" / name
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    with pytest.raises(UserError, match=r"run has files that are not of a run \(.*\); choose another output_dir"):
        run(load_config(config, ONE_STEP), Silent())
    assert path.read_text() == "mine"
    assert [p for p in (tmp_path / "run").rglob("*") if p.is_file()] == [path]


def test_a_run_that_was_killed_before_its_settings_were_written_starts_again(config: Path) -> None:
    folder = run(load_config(config, ONE_STEP), Silent())
    for path in folder.root.iterdir():
        if path.is_file():
            path.unlink()
    for path in (folder.best, folder.final):
        shutil.rmtree(path)
    shutil.rmtree(folder.previous)
    with pytest.raises(UserError, match="no run to resume"):
        run(load_config(config, ONE_STEP), Silent(), resume=True)
    run(load_config(config, ONE_STEP), Silent())
    assert len(folder.metrics.read_text().splitlines()) == 1


def contents(folder: Path) -> dict[str, object]:
    """What two equal runs have in common: everything but times and paths."""
    files: dict[str, object] = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in ("metrics.jsonl", "config.yaml", "report.html", "text2grad_files.json")
        if "trackers" not in path.parts and path.name != "README.md"
    }
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    files["metrics"] = [{k: v for k, v in m.items() if not k.startswith(("time/", "tokens_per"))} for m in lines]
    return files


def test_a_run_resumes_where_it_was_moved_to(config: Path, tmp_path: Path) -> None:
    three = ["policy.report_to=none", "policy.max_steps=3"]
    through = run(load_config(config, [*three, f"output_dir={tmp_path}/through"]), Silent())
    folder = run(load_config(config, [*three, "policy.max_steps=2"]), Silent())
    for path in folder.root.rglob("*"):
        if path.is_file() and path not in (folder.config, folder.report):  # which show the settings
            assert str(folder.root).encode() not in path.read_bytes(), path
    (tmp_path / "elsewhere").mkdir()
    moved = folder.root.rename(tmp_path / "elsewhere" / "renamed")
    with pytest.raises(UserError, match=r"no run to resume; .* give the folder of a moved run with -o"):
        run(load_config(moved / "config.yaml", three), Silent(), resume=True)
    run(load_config(moved / "config.yaml", [*three, f"output_dir={moved}"]), Silent(), resume=True)
    assert contents(moved) == contents(through.root)
    assert load_config(moved / "config.yaml").output_dir == moved
    assert not folder.root.exists()


def test_a_finished_run_has_nothing_to_do_with_other_settings(config: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = run(load_config(config, ONE_STEP), Silent())
    before = {path: path.stat().st_mtime_ns for path in folder.root.rglob("*")}
    for override in ("policy.learning_rate=1e-3", "policy.beta=0.7"):
        caplog.clear()
        run(load_config(config, [*ONE_STEP, override]), Silent(), resume=True)
        assert "had finished at step 1, so nothing was done with other settings" in caplog.text
    assert {path: path.stat().st_mtime_ns for path in folder.root.rglob("*")} == before
    with pytest.raises(UserError, match=r"other settings \(policy.beta\)"):
        run(load_config(config, [*ONE_STEP, "policy.beta=0.7", "policy.max_steps=2"]), Silent(), resume=True)
    run(load_config(config, [*ONE_STEP, "policy.learning_rate=1e-3", "policy.max_steps=2"]), Silent(), resume=True)
    assert len(folder.metrics.read_text().splitlines()) == 2


def test_the_folder_and_the_prompts_of_a_run_are_checked_before_its_model_is_loaded(
    config: Path, tmp_path: Path
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("mine")
    for overrides, said in (
        (ONE_STEP, "not of a run"),
        ([f"output_dir={tmp_path}/2", "data.train=none.jsonl"], "no such"),
    ):
        display = Mute()
        with pytest.raises(UserError, match=said):
            run(load_config(config, overrides), display)
        assert not display.seen


def test_lost_settings_are_named(config: Path) -> None:
    folder = run(load_config(config, ONE_STEP), Silent())
    folder.config.unlink()
    with pytest.raises(UserError, match=r"config\.yaml is missing; restore it from a copy to resume the run"):
        run(load_config(config, ONE_STEP), Silent(), resume=True)


def test_completions_before_training_are_checked_when_a_run_is_resumed(
    config: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = run(load_config(config, ONE_STEP), Silent())
    before = folder.before.read_text()
    evaluation = folder.evaluation.read_bytes()
    damaged = [before[: len(before) // 2], before.replace("h1", "h9"), before.replace("a", "b", 1), "\0\n", ""]
    for text in damaged:
        caplog.clear()
        folder.before.write_text(text)
        run(load_config(config, ONE_STEP), Silent(), resume=True)
        assert "generated again" in caplog.text
        assert (folder.before.read_text(), folder.evaluation.read_bytes()) == (before, evaluation)
    for path in (folder.before, folder.before_checksum):
        path.unlink()
        run(load_config(config, ONE_STEP), Silent(), resume=True)
        assert folder.before.read_text() == before
    caplog.clear()
    folder.write_before(before.replace("h1", "h9"))
    run(load_config(config, ONE_STEP), Silent(), resume=True)
    assert "is of other held-out prompts; its completions are generated again" in caplog.text
    assert folder.before.read_text() == before
    caplog.clear()
    run(load_config(config, ONE_STEP), Silent(), resume=True)
    assert "again" not in caplog.text


def test_lost_best_weights_are_named_before_training_goes_on(config: Path, caplog: pytest.LogCaptureFixture) -> None:
    two, more = (["policy.report_to=none", f"policy.max_steps={steps}"] for steps in (2, 4))
    folder = run(load_config(config, two), Silent())
    weights = folder.best / "adapter_model.safetensors"
    content = weights.read_bytes()
    weights.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    recorded = folder.metrics.read_text()
    for _ in range(2):
        with pytest.raises(
            UserError, match=r"best .*, so the best weights are lost; set load_best_model_at_end to false"
        ):
            run(load_config(config, more), Silent(), resume=True)
    assert f"{weights} is damaged (its checksum is wrong); the folder is kept as" in caplog.text
    assert folder.best.with_name("damaged").joinpath(weights.name).exists()
    assert folder.metrics.read_text() == recorded
    run(load_config(config, [*more, "policy.load_best_model_at_end=false"]), Silent(), resume=True)
    assert len(folder.metrics.read_text().splitlines()) == 3  # patience


def test_a_damaged_final_model_is_written_anew(config: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = run(load_config(config, ONE_STEP), Silent())
    weights, manifest = folder.final / "adapter_model.safetensors", folder.final / "text2grad_files.json"
    content = weights.read_bytes()
    for path, damaged in (
        (weights, content[:40]),
        (weights, content + b"x"),
        (manifest, manifest.read_bytes().replace(b"adapter_config", b"adapter_confih")),
    ):
        caplog.clear()
        path.write_bytes(damaged)
        run(load_config(config, ONE_STEP), Silent(), resume=True)
        assert "the folder is kept as" in caplog.text
        assert weights.read_bytes() == content


class Mute(Silent):
    """Records phases and progress."""

    def __init__(self) -> None:
        self.seen: list[object] = []

    def on_phase(self, name: str) -> None:
        self.seen.append(name)

    def on_progress(self, done: int, total: int) -> None:
        self.seen.append((done, total))


def test_evaluation_before_and_after_shows_progress(config: Path) -> None:
    display = Mute()
    run(load_config(config, ONE_STEP), display)
    generating, critiquing = "Generating held-out completions", "Critiquing held-out completions"
    before, after = (
        [f"{generating} {when} training", (3, 3), f"{critiquing} {when} training", (3, 3)]
        for when in ("before", "after")
    )
    assert display.seen == ["Loading the model", *before, "Training", *after]


@pytest.mark.parametrize("evaluated", [True, False])
def test_a_run_whose_critiques_all_failed_ends_with_the_reason(config: Path, evaluated: bool) -> None:
    overrides = [
        *ONE_STEP,
        "critic.name=support:Broken",
        "policy.eval_steps=null",
        "policy.load_best_model_at_end=false",
    ]
    if not evaluated:
        overrides.append("data.eval=null")
    with pytest.raises(UserError) as error:
        run(load_config(config, overrides), Silent())
    said = str(error.value)
    assert "the critic Broken raised LookupError: no such style (support.py, line " in said
    if evaluated:
        assert said.startswith("every critique of the held-out completions before training failed, last: ")
    else:
        assert said.startswith("nothing was learned: every critique of the run failed, last: ")
        assert said.endswith("; fix the critic and start again in another output_dir")


def test_empty_completions_are_written_and_read(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generate = Text2GradTrainer.generate

    def generate_nothing(*arguments: Any, **options: Any) -> list[Example]:
        return [e.model_copy(update={"completion": ""}) for e in generate(*arguments, **options)]

    monkeypatch.setattr(Text2GradTrainer, "generate", generate_nothing)
    screen = io.StringIO()
    with TerminalDisplay(Console(file=screen, width=200)) as display:
        folder = run(load_config(config, ONE_STEP), display)
    assert "Example h0" in screen.getvalue()
    evaluation = read_run(folder.root).evaluation
    assert evaluation is not None
    assert [example.after.completion for example in evaluation.examples] == [""] * 3
    run(load_config(config, ONE_STEP), Silent(), resume=True)


def test_held_out_prompts_that_are_trained_on_are_warned_of(
    config: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_examples(tmp_path / "heldout.jsonl", [PROMPTS[1].model_copy(update={"id": "leak"}), *HELD_OUT, HELD_OUT[0]])
    run(load_config(config, ONE_STEP), Silent())
    assert 'ids that several held-out examples have: 1, as "h0"' in caplog.text
    assert 'held-out examples whose prompt is also trained on: 1 of 6, as "leak"' in caplog.text
