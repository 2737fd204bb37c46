"""Metrics in TensorBoard, and checks of the trackers."""

from __future__ import annotations

import math
import time
from pathlib import Path

import pytest
from support import PROMPTS, MakeTrainer
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from text2grad.errors import UserError
from text2grad.trainer.callbacks import Callback, Metrics
from text2grad.trainer.config import PolicySettings
from text2grad.trainer.trackers import finite_numbers, plain_values, require_trackers


def scalars(folder: Path, name: str) -> dict[int, float]:
    events = EventAccumulator(str(folder / "text2grad")).Reload()
    return {event.step: event.value for event in events.Scalars(name)}


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ("none", ()),
        (None, ()),
        ([], ()),
        ("wandb", ("wandb",)),
        (["tensorboard", "trackio", "tensorboard", "none"], ("tensorboard", "trackio")),
    ],
)
def test_one_or_several_or_none(given: object, names: tuple[str, ...]) -> None:
    assert PolicySettings.model_validate({"report_to": given}).report_to == names


@pytest.mark.parametrize("given", ["mlflow", ["tensorboard", "mlflow"], 3])
def test_an_unknown_tracker_is_rejected(given: object) -> None:
    with pytest.raises(UserError, match="report_to"):
        PolicySettings.parse({"report_to": given}, "here")


def test_a_missing_package_is_named_with_its_remedy(make_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("text2grad.trainer.trackers.find_spec", lambda name: None)
    for name in ("tensorboard", "wandb", "trackio"):
        with pytest.raises(UserError, match=rf'pip install "text2grad\[{name}\]"'):
            make_trainer(report_to=name)
    require_trackers([])


def test_every_step_and_every_evaluation_reaches_tensorboard(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(max_steps=3, eval_steps=2, eval_dataset=PROMPTS[:2], report_to="tensorboard")
    trainer.train()
    assert list(scalars(trainer.run.trackers, "reward")) == [1, 2, 3]
    assert list(scalars(trainer.run.trackers, "eval/score")) == [2, 3]
    assert scalars(trainer.run.trackers, "learning_rate")[3] == pytest.approx(1e-2)
    (settings,) = trainer.run.trackers.rglob("hparams.yml")
    assert "eval_steps: 2" in settings.read_text()
    assert str(trainer.run.root) not in settings.read_text()


def test_tensorboard_gets_every_few_steps(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(max_steps=5, logging_steps=2, report_to="tensorboard")
    trainer.train()
    assert list(scalars(trainer.run.trackers, "reward")) == [2, 4, 5]


def test_a_resumed_run_takes_the_place_of_what_was_logged_after_its_checkpoint(make_trainer: MakeTrainer) -> None:
    class KilledError(Exception):
        pass

    class Kill(Callback):
        def on_save(self, folder: Path) -> None:
            raise KilledError

    settings = {"max_steps": 4, "save_steps": 3, "report_to": ["tensorboard"]}
    with pytest.raises(KilledError):
        make_trainer(callbacks=[Kill()], **settings).train()  # after three steps, saved
    time.sleep(1)  # TensorBoard orders its files by the second in their names
    resumed = make_trainer(**settings)
    resumed.start(resume=True)
    resumed.state.step = 2  # as if the third had not been saved
    resumed.run.rewind(2)
    resumed.train()
    events = EventAccumulator(str(resumed.run.trackers / "text2grad")).Reload()
    assert [event.step for event in events.Scalars("reward")] == [1, 2, 3, 4]


def test_only_finite_numbers_are_logged() -> None:
    metrics: Metrics = {
        "step": 3,
        "reward": 0.5,
        "kl": math.nan,
        "critic/failed": 0,
        "critic/error": None,
        "warnings": ["x"],
    }
    assert finite_numbers(metrics) == {"reward": 0.5, "critic/failed": 0}


def test_settings_are_flat_and_plain() -> None:
    settings = {"a": {"b": 1, "c": None}, "names": ["x", "y"], "on": True, "rate": 0.5}
    assert plain_values(settings) == {"a.b": 1, "names": "['x', 'y']", "on": True, "rate": 0.5}
