"""Completions that TRL's GRPOTrainer has logged: files of the same shape, written the same way."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from text2grad.errors import UserError
from text2grad.report import build_report
from text2grad.report.trl_logs import read_trl_run


def chat(role: str, text: str) -> list[dict[str, str]]:
    return [{"role": role, "content": text}]


def write_completions(folder: Path, step: int, **columns: list[Any]) -> None:
    (folder / "completions").mkdir(parents=True, exist_ok=True)
    table = {"step": [step] * len(columns["prompt"]), **columns}
    pd.DataFrame(table).to_parquet(folder / "completions" / f"completions_{step:05d}.parquet")


def write_state(folder: Path, step: int, history: list[dict[str, Any]]) -> None:
    (folder / f"checkpoint-{step}").mkdir()
    (folder / f"checkpoint-{step}" / "trainer_state.json").write_text(json.dumps({"log_history": history}))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two steps with two reward functions, one of which does not apply to all, and an extra column."""
    folder = tmp_path / "grpo"
    for step in (2, 4):
        write_completions(
            folder,
            step,
            prompt=[chat("user", "Say <b>hi</b>.")] * 2,
            completion=[chat("assistant", f"hi {step}"), chat("assistant", "no")],
            brevity=[0.5, 1.0],
            right=[1.0, math.nan],
            seconds=[0.1, 0.2],
            advantage=[0.7, -0.7],
        )
    return folder


def test_rewards_and_advantages_are_of_whole_completions(run: Path) -> None:
    write_state(run, 4, [{"step": 2, "reward": 1.0, "rewards/brevity/mean": 0.75, "rewards/right/mean": 1.0}])
    read = read_trl_run(run)
    assert [(sample.step, sample.sample) for sample in read.samples] == [(2, 0), (2, 1), (4, 0), (4, 1)]
    first, second, *_ = read.samples
    assert (first.completion, first.total) == ("hi 2", 1.5)
    assert first.scores == {"brevity": 0.5, "right": 1.0}
    assert second.scores == {"brevity": 1.0}  # a function that does not apply logs NaN
    whole = first.tokens
    assert (whole.start, whole.end, whole.advantage, whole.reward) == ([0], [4], [0.7], [1.5])
    assert [message.content for message in first.prompt] == ["Say <b>hi</b>."]


def test_metrics_come_from_the_last_checkpoint(run: Path) -> None:
    write_state(run, 2, [{"step": 2, "reward": 0.1}])
    write_state(run, 4, [{"step": 2, "reward": 0.1}, {"step": 4, "reward": 0.4}, {"step": 4, "train_loss": 1.0}])
    os.utime(run / "checkpoint-2" / "trainer_state.json", (1, 1))
    assert read_trl_run(run).metrics == [{"step": 2, "reward": 0.1}, {"step": 4, "reward": 0.4, "train_loss": 1.0}]
    (run / "checkpoint-4" / "trainer_state.json").write_text("{}")
    with pytest.raises(UserError, match="it has no log_history"):
        read_trl_run(run)


def test_without_a_checkpoint_all_numbers_are_rewards_and_their_means_the_curve(run: Path) -> None:
    read = read_trl_run(run)
    assert set(read.samples[0].scores) == {"brevity", "right", "seconds"}
    assert [record["step"] for record in read.metrics] == [2, 4]
    assert read.metrics[0]["reward"] == pytest.approx((1.6 + 1.2) / 2)


def test_plain_text_and_conversations_with_tools(tmp_path: Path) -> None:
    turns = [*chat("assistant", "I look."), *chat("tool", "3"), *chat("assistant", "Three.")]
    write_completions(tmp_path, 1, prompt=["How many?"], completion=[turns], reward_len=[1.0], advantage=[0.0])
    (sample,) = read_trl_run(tmp_path / "completions").samples  # the folder of the files itself
    assert (sample.prompt, sample.completion) == ("How many?", "I look.\n\n3\n\nThree.")


def test_of_many_completions_some_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("text2grad.report.trl_logs.MAX_SAMPLES", 400)
    for step in range(1, 4):
        texts = [f"{step} {i}" for i in range(300)]
        write_completions(tmp_path, step, prompt=texts, completion=texts, reward=[1.0] * 300, advantage=[0.0] * 300)
    read = read_trl_run(tmp_path)
    assert (len(read.samples), read.num_samples_recorded) == (400, 900)
    assert {sample.step for sample in read.samples} == {1, 2, 3}


def test_other_tables_are_refused(tmp_path: Path) -> None:
    write_completions(tmp_path, 1, prompt=["a"], answer=["b"])
    with pytest.raises(UserError, match="no column completion; these are no completions that TRL has logged"):
        read_trl_run(tmp_path)


def test_the_page_shows_them(run: Path, browser: Any) -> None:
    write_state(run, 4, [{"step": step, "reward": 0.1 * step, "kl": 0.01} for step in (2, 4)])
    browser.open(build_report(run))
    assert browser.errors() == []
    shown = browser.evaluate("document.querySelector('.sample-view').textContent")
    assert "brevity 0.5" in shown
    assert "tokens" not in shown
    assert browser.evaluate("document.querySelectorAll('#main-curves .chart').length") == 2
    assert browser.evaluate("Array.from(document.querySelectorAll('h2')).map((h) => h.textContent)") == [
        "What happened",
        "Curves",
        "Signs of trouble",
        "Samples",
    ]
    (run / "report.html").write_text("my own page")
    with pytest.raises(UserError, match=r"report\.html is no page of text2grad's"):
        build_report(run)
