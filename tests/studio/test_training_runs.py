"""Training from the studio: a real process, followed by its files."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from studio_support import examples

from text2grad.errors import UserError
from text2grad.schema import Feedback, Span, read_examples
from text2grad.studio.training_runs import TrainingRun, TrainingRuns

FEW_STEPS = ["policy.max_steps=1", "policy.max_completion_length=8", "policy.bf16=false"]


def test_a_run_is_started_followed_and_reported(tiny_model: Path, tmp_path: Path) -> None:
    feedback = Feedback(critic="human:Mia", spans=[Span(start=0, end=3, label="poor")])
    commented = [example.model_copy(update={"feedback": feedback}) for example in examples()[:2]]
    runs = TrainingRuns(tmp_path, str(tiny_model), FEW_STEPS)
    with pytest.raises(UserError, match="no comments to train on"):
        runs.start([])
    state = runs.start(commented)
    assert (state.id, state.state, state.comments) == ("studio", "running", 2)
    with pytest.raises(UserError, match="studio is still training"):
        runs.start(commented)
    deadline = time.monotonic() + 120
    while state.state == "running" and time.monotonic() < deadline:
        time.sleep(0.3)
        (state,) = runs.states()
    assert (state.state, state.step, state.max_steps) == ("finished", 1, 1), state.log
    assert state.has_report
    assert "loss" in " ".join(state.metrics[0])
    assert [e.feedback for e in read_examples(tmp_path / "runs" / "studio.studio.jsonl")] == [feedback, feedback]
    with pytest.raises(UserError, match="there is no run"):
        runs.get("../secret")


def test_a_failed_run_shows_why(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as out:
        process = subprocess.Popen([sys.executable, "-c", "import sys; print('no disk'); sys.exit(3)"], stdout=out)
        run = TrainingRun(tmp_path / "run", 1, process, log)
        process.wait()
    state = run.state()
    assert (state.state, state.step, state.log, state.has_report) == ("failed", 0, ["no disk"], False)


def test_a_run_is_stopped(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    run = TrainingRun(tmp_path / "run", 1, process, tmp_path / "log")
    assert run.state().state == "running"
    run.stop()
    process.wait(30)
    assert run.state().state == "stopped"
