"""Damaged files of a run: the run resumes from what is intact, exactly, or says in a sentence what is lost."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from support import MakeTrainer, weights

from text2grad import Text2GradTrainer
from text2grad.errors import UserError
from text2grad.files import exclusive_lock
from text2grad.folders import MANIFEST
from text2grad.report import build_report
from text2grad.schema import Example, Feedback
from text2grad.trainer.callbacks import Callback, Metrics

FILES = ["policy.safetensors", "optimizer.safetensors", "trainer_state.json", MANIFEST]


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    path.write_bytes(b"")


Damage = Callable[[Path], None]
damages = pytest.mark.parametrize("damage", [flip, truncate, empty, Path.unlink], ids=lambda damage: damage.__name__)


def recorded(trainer: Text2GradTrainer) -> list[Metrics]:
    lines = map(json.loads, trainer.run.metrics.read_text().splitlines())
    return [{k: v for k, v in m.items() if not k.startswith(("time/", "tokens_per"))} for m in lines]


class StoppedError(Exception):
    pass


class StopAfter(Callback):
    def __init__(self, step: int) -> None:
        self.step = step

    def on_save(self, folder: Path) -> None:
        if trained_steps(folder) == self.step:
            raise StoppedError


def trained_steps(folder: Path) -> int:
    return int(json.loads((folder / "trainer_state.json").read_text())["step"])


@pytest.fixture
def stopped(make_trainer: MakeTrainer) -> Text2GradTrainer:
    """A run that was stopped after three of four steps."""
    trainer = make_trainer("stopped", max_steps=4, callbacks=[StopAfter(3)])
    with pytest.raises(StoppedError):
        trainer.train()
    assert (trained_steps(trainer.run.checkpoint), trained_steps(trainer.run.previous)) == (3, 2)
    return trainer


@pytest.fixture
def through(make_trainer: MakeTrainer) -> Text2GradTrainer:
    trainer = make_trainer("through", max_steps=4)
    trainer.train()
    return trainer


@damages
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_checkpoint_falls_back_to_the_previous_one_exactly(
    make_trainer: MakeTrainer,
    stopped: Text2GradTrainer,
    through: Text2GradTrainer,
    name: str,
    damage: Damage,
    caplog: pytest.LogCaptureFixture,
) -> None:
    damage(stopped.run.checkpoint / name)
    damaged = {path.name for path in stopped.run.checkpoint.iterdir()}
    resumed = make_trainer("stopped", max_steps=4)
    resumed.train(resume=True)
    # A flipped byte in the manifest may be in the name of another file.
    where = stopped.run.checkpoint / name if (name, damage) != (MANIFEST, flip) else stopped.run.checkpoint
    assert str(where) in caplog.text
    aside = stopped.run.checkpoint.with_name("damaged")
    assert f"the folder is kept as {aside}, and the run resumes without it" in caplog.text
    assert {path.name for path in aside.iterdir()} == damaged
    torch.testing.assert_close(weights(resumed), weights(through), rtol=0, atol=0)
    assert recorded(resumed) == recorded(through)
    assert resumed.run.samples.read_bytes() == through.run.samples.read_bytes()
    for file in FILES[:3]:
        assert (resumed.run.checkpoint / file).read_bytes() == (through.run.checkpoint / file).read_bytes()
    assert (trained_steps(resumed.run.checkpoint), trained_steps(resumed.run.previous)) == (4, 3)


@damages
def test_a_damaged_previous_checkpoint_is_moved_away(
    make_trainer: MakeTrainer, stopped: Text2GradTrainer, damage: Damage, caplog: pytest.LogCaptureFixture
) -> None:
    damage(stopped.run.previous / MANIFEST)
    make_trainer("stopped", max_steps=4).train(resume=True)
    assert f"{stopped.run.previous}" in caplog.text
    assert (trained_steps(stopped.run.checkpoint), trained_steps(stopped.run.previous)) == (4, 3)
    assert trained_steps(stopped.run.checkpoint.with_name("damaged")) == 2


@pytest.mark.parametrize("name", ["best", "final"])
def test_a_folder_that_could_not_be_written_at_the_end_is_refused_at_the_start(
    make_trainer: MakeTrainer, stopped: Text2GradTrainer, name: str
) -> None:
    folder = stopped.run.checkpoint.with_name(name)
    folder.mkdir()
    (folder / "thesis.tex").write_text("years of work")
    with pytest.raises(UserError, match=f"{name} exists and is not a text2grad model; .* move it away"):
        make_trainer("stopped", max_steps=4).train(resume=True)
    assert trained_steps(stopped.run.checkpoint) == 3


def test_a_second_damage_does_not_overwrite_what_was_kept_of_the_first(
    make_trainer: MakeTrainer, stopped: Text2GradTrainer
) -> None:
    folder = stopped.run.checkpoint.parent
    (folder / "damaged").mkdir()
    (folder / "damaged" / "notes").write_text("mine")
    flip(stopped.run.checkpoint / "policy.safetensors")
    make_trainer("stopped", max_steps=4).train(resume=True)
    assert (folder / "damaged" / "notes").read_text() == "mine"
    assert trained_steps(folder / "damaged-2") == 3


def test_without_an_intact_checkpoint_both_damages_are_named(
    make_trainer: MakeTrainer, stopped: Text2GradTrainer
) -> None:
    flip(stopped.run.checkpoint / "policy.safetensors")
    truncate(stopped.run.previous / "trainer_state.json")
    metrics = stopped.run.metrics.read_bytes()
    with pytest.raises(UserError) as error:
        make_trainer("stopped", max_steps=4).train(resume=True)
    assert str(error.value) == (
        f"no checkpoint is intact: {stopped.run.checkpoint / 'policy.safetensors'} is damaged (its checksum is wrong); "
        f"{stopped.run.previous / 'trainer_state.json'} is damaged (its checksum is wrong); start again in another "
        f"output_dir"
    )
    assert stopped.run.metrics.read_bytes() == metrics
    shutil.rmtree(stopped.run.previous)
    with pytest.raises(UserError, match="previous does not exist; start again"):
        make_trainer("stopped", max_steps=4).train(resume=True)


def test_a_run_of_an_earlier_version_is_not_resumed(make_trainer: MakeTrainer, stopped: Text2GradTrainer) -> None:
    (stopped.run.checkpoint / MANIFEST).write_text(json.dumps({"kind": "checkpoint", "files": FILES}))
    shutil.rmtree(stopped.run.previous)
    with pytest.raises(UserError, match=f"{MANIFEST} is of an earlier version of text2grad; .* start again"):
        make_trainer("stopped", max_steps=4).train(resume=True)


def drop_line(text: str) -> str:
    return "".join(text.splitlines(keepends=True)[1:])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: "", "metrics.jsonl does not have one record of each step up to 3, .* look at step 1; restore"),
        (drop_line, "look at step 1"),
        (lambda text: text[: len(text) * 3 // 4], "look at step 3"),
        (lambda text: text.replace('"step": 2', '"step": 1'), "look at step 2"),
        (lambda text: text.replace('"step": 2', '"stop": 2'), r"metrics.jsonl:2: the record has no step"),
        (lambda text: text.replace('"step": 2', '"step": "2"'), r"metrics.jsonl:2: the record has no step"),
        (lambda text: text.replace('"samples": 4', '"samplez": 4'), "has None completions per step"),
        (lambda text: text.replace("}\n{", "}\n\0{", 1), r"metrics.jsonl:2: not valid JSON"),
        (lambda text: text.replace("}\n{", "}\n[]\n{", 1), r"metrics.jsonl:2: not a JSON object"),
    ],
)
def test_damaged_metrics_are_a_sentence(
    make_trainer: MakeTrainer, stopped: Text2GradTrainer, change: Callable[[str], str], said: str
) -> None:
    stopped.run.metrics.write_text(change(stopped.run.metrics.read_text()))
    with pytest.raises(UserError, match=said):
        make_trainer("stopped", max_steps=4).train(resume=True)


def test_a_partial_last_record_is_written_again(
    make_trainer: MakeTrainer, stopped: Text2GradTrainer, through: Text2GradTrainer
) -> None:
    for path in (stopped.run.metrics, stopped.run.samples):
        text = path.read_text()
        first = text.splitlines()[0]
        path.write_text(text + first[: len(first) // 2])
    resumed = make_trainer("stopped", max_steps=4)
    resumed.train(resume=True)
    assert recorded(resumed) == recorded(through)
    assert resumed.run.samples.read_bytes() == through.run.samples.read_bytes()


@pytest.mark.parametrize("name", ["metrics.jsonl", "samples.jsonl", "evaluation.json", "config.yaml"])
def test_a_report_of_damaged_files_is_written_or_says_what_is_damaged(through: Text2GradTrainer, name: str) -> None:
    root = through.run.root
    through.run.config.write_text("model: {name: tiny}\n")
    through.run.evaluation.write_text(json.dumps({"n": 1, "metrics": {"score": {"before": 0.5}}, "examples": []}))
    build_report(root)
    content = (root / name).read_bytes()
    positions = range(0, len(content), max(len(content) // 60, 1))
    errors = []
    for position in positions:
        flipped = bytearray(content)
        flipped[position] ^= 1 << position % 7
        for text in (bytes(flipped), content[:position]):
            (root / name).write_bytes(text)
            try:
                build_report(root)
            except UserError as error:
                errors.append(str(error))
    assert errors
    assert all(str(root / name) in error for error in errors)


def test_a_run_that_is_being_written_is_refused_to_others(make_trainer: MakeTrainer) -> None:
    seen: list[str] = []

    class Intruder(Callback):
        def on_step(self, metrics: Metrics) -> None:
            for resume in (True, False):
                with pytest.raises(UserError) as error:
                    make_trainer("shared", max_steps=9).train(resume=resume)
                seen.append(str(error.value))

    trainer = make_trainer("shared", max_steps=2, callbacks=[Intruder()])
    trainer.train()
    assert set(seen) == {
        f"{trainer.run.root} is being written by process {os.getpid()} on {os.uname().nodename}; wait for it, or "
        f"choose another place"
    }
    assert len(recorded(trainer)) == 2
    assert not (trainer.run.root / ".lock").exists()
    with exclusive_lock(trainer.run.root / ".lock", trainer.run.root), pytest.raises(UserError, match="being written"):
        make_trainer("shared", max_steps=9).train(resume=True)
    make_trainer("shared", max_steps=3).train(resume=True)


def test_lost_best_weights_do_not_stop_a_run_at_its_end(
    make_trainer: MakeTrainer, caplog: pytest.LogCaptureFixture
) -> None:
    """A fallback to a checkpoint before the best step, with a critic that then scores that step lower."""

    class Moody:
        def __init__(self, scores: list[float]) -> None:
            self.scores = scores

        def critique(self, examples: Any) -> list[Feedback]:
            heldout = examples[0].id == "h"
            score = self.scores.pop(0) if heldout else 0.0
            return [Feedback(critic="moody", score=score) for _ in examples]

    settings: dict[str, Any] = {
        "eval_steps": 1,
        "max_steps": 3,
        "load_best_model_at_end": True,
        "eval_dataset": [Example(id="h", prompt="Go.")],
    }
    first = make_trainer("moody", critic=Moody([0.5, 0.1, 0.9]), **settings)
    first.train()
    flip(first.run.checkpoint / "policy.safetensors")
    resumed = make_trainer("moody", critic=Moody([0.05]), **settings)
    resumed.train(resume=True)
    assert "the weights of step 1, the best, are lost: the run ends with the last ones" in caplog.text
    assert resumed.trained_steps == 3
