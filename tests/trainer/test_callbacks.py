"""Order of the callbacks of a run, and how they end it."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from support import PROMPTS, MakeTrainer

from text2grad.distributed.processes import SINGLE_PROCESS
from text2grad.errors import UserError
from text2grad.trainer.callbacks import Callback, Callbacks, Metrics, first_reason


class Recorder(Callback):
    """Records every call."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.entries: list[str] = []
        self.stop_at = stop_at

    def on_start(self, step: int, max_steps: int) -> None:
        self.entries.append(f"start {step}/{max_steps}")

    def on_step(self, metrics: Metrics) -> str | None:
        self.entries.append(f"step {metrics['step']}")
        return "enough" if metrics["step"] == self.stop_at else None

    def on_evaluate(self, metrics: Metrics) -> None:
        self.entries.append(f"evaluate {metrics['step']} of {metrics['eval/samples']}")

    def on_save(self, folder: Path) -> None:
        self.entries.append(f"save {folder.name}")

    def on_end(self) -> None:
        self.entries.append("end")


def test_callbacks_are_called_in_order(make_trainer: MakeTrainer) -> None:
    recorder = Recorder()
    trainer = make_trainer(max_steps=3, eval_steps=2, save_steps=9, eval_dataset=PROMPTS[:2], callbacks=[recorder])
    trainer.train()
    trainer.save_model()
    calls = [entry for entry in recorder.entries if entry != "save best"]
    assert calls == [
        *("start 0/3", "step 1", "evaluate 2 of 2", "step 2", "save last"),  # the first evaluation is the best so far
        *("evaluate 3 of 2", "step 3", "save last", "end", "save final"),
    ]
    assert recorder.entries[recorder.entries.index("save last") + 1] == "save best"


def test_metrics_are_logged_every_few_steps_with_evaluations_and_at_the_end(make_trainer: MakeTrainer) -> None:
    class Logged(Callback):
        def on_log(self, metrics: Metrics) -> None:
            steps.append(metrics["step"])

    steps: list[int] = []
    trainer = make_trainer(max_steps=7, logging_steps=3, eval_steps=5, eval_dataset=PROMPTS[:1], callbacks=[Logged()])
    trainer.train()
    assert steps == [3, 5, 6, 7]
    assert len(trainer.run.metrics.read_text().splitlines()) == 7, "every step is recorded"


def test_one_of_several_can_end_the_run_and_its_last_step_is_saved(
    make_trainer: MakeTrainer, caplog: pytest.LogCaptureFixture
) -> None:
    recorders = [Recorder(), Recorder(stop_at=2), Recorder()]
    trainer = make_trainer(max_steps=5, save_steps=9, callbacks=recorders)
    with caplog.at_level(logging.WARNING, logger="text2grad"):
        trainer.train()
    for recorder in recorders:
        assert recorder.entries == ["start 0/5", "step 1", "step 2", "save last", "end"]
    assert "the run ends after step 2: enough" in caplog.text
    state = json.loads((trainer.run.checkpoint / "trainer_state.json").read_text())
    assert state["step"] == 2
    trainer.train()
    assert trainer.state.step == 5, "training can be continued"


def test_the_end_is_reported_after_an_error_too(make_trainer: MakeTrainer) -> None:
    class Failing(Callback):
        def on_step(self, metrics: Metrics) -> None:
            raise UserError("no")

    recorder = Recorder()
    with pytest.raises(UserError, match="no"):
        make_trainer(callbacks=[recorder, Failing()]).train()
    assert recorder.entries == ["start 0/3", "step 1", "end"]


def test_a_callback_needs_no_more_than_it_uses() -> None:
    class Idle(Callback):
        pass

    both = Callbacks([Idle(), Recorder(stop_at=1)], SINGLE_PROCESS)
    both.on_start(0, 1)
    both.on_save(Path("x"))
    both.on_end()
    assert both.on_evaluate({"step": 1, "eval/samples": 2}) is None
    assert both.on_step({"step": 1}) == "enough"


def test_the_first_reason_counts() -> None:
    assert first_reason([None, "", "a", "b"]) == "a"
    assert first_reason([None]) is None
