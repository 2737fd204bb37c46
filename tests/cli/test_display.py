"""The terminal output of a run."""

from __future__ import annotations

import io
import math
import time

import pytest
from rich.console import Console

from text2grad.cli.display import TerminalDisplay


@pytest.fixture
def screen() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def display(screen: io.StringIO) -> TerminalDisplay:
    return TerminalDisplay(Console(file=screen, width=200))


def test_logged_metrics_are_one_line_where_there_is_no_terminal(display: TerminalDisplay, screen: io.StringIO) -> None:
    metrics = {
        "step": 4,
        "reward": math.nan,
        "kl": 0.5,
        "tokens_per_second": 12.3,
        "critic/failed": 2,
        "time/step": 1.0,
    }
    display.on_start(3, 9)
    display.on_step(metrics)
    assert screen.getvalue() == ""
    display.on_log(metrics)
    assert screen.getvalue() == "step 4/9  reward –  KL +0.50  12 tok/s  2 failed critiques  1.0 s\n"


def test_an_evaluation_is_a_line_of_its_own(display: TerminalDisplay, screen: io.StringIO) -> None:
    metrics = {"step": 4, "eval/score": 0.25, "eval/words": 7.6, "eval/samples": 5, "eval/failed": 0}
    display.on_evaluate(metrics | {"eval/rouge_l": 0.1234})
    display.on_evaluate(metrics | {"eval/score": math.nan, "eval/words": math.nan, "eval/failed": 5})
    assert screen.getvalue().splitlines() == [
        "step 4  held-out score +0.25  ROUGE-L 0.123  8 words",
        "step 4  held-out score –  5 failed critiques",
    ]


def test_the_progress_of_a_phase_is_shown(
    display: TerminalDisplay, screen: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    display.on_phase("Generating")
    for done, seconds in ((10, 4.0), (20, 11.0), (30, 12.0), (40, 25.0)):
        now[0] = seconds
        display.on_progress(done, 40)
    assert screen.getvalue().splitlines() == ["Generating", "Generating  20/40", "Generating  40/40"]
    (task,) = display.progress.tasks
    assert (task.completed, task.total, task.description) == (40, 40, "Generating")
