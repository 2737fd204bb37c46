"""The comparison of training runs: on made-up runs whose differences are known."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import evidence_campaign
import evidence_report
import evidence_select
import harness
import numpy as np
import pytest
from evidence_campaign import Job, make_plan, run_plan
from evidence_dpo import rank
from evidence_plan import (
    HOLISTIC,
    LEFT_OUT,
    MAIN_ARMS,
    OURS,
    REPORT_SEEDS,
    SPANS_ALONE,
    Run,
    chosen_settings,
    grid,
    plan_report,
    plan_selection,
    write_run,
)
from evidence_reflection import ask_again, list_faults
from evidence_run import KEPT_TEXTS, compact
from evidence_stats import compare, difference, first_at, samples_to
from one_fault import OneFault

from text2grad.schema import Example, Feedback, Omission, Span

PROMPTS = 40


def make_run(run: Run, gain: float, words: int = 20, prompts: int = PROMPTS, **fields: Any) -> dict[str, Any]:
    """A run whose metric rises linearly from .2 by `gain`, with noise that the arms share and noise of its own."""
    metrics = {"questions": ["f1", "exact"], "summaries": ["rouge_l", "bleu"], "code": ["passed"]}
    shared, own = np.random.default_rng(7), np.random.default_rng([run.seed, len(run.arm), words])

    def rows(value: float) -> list[dict[str, Any]]:
        return [
            {name: value + 0.1 * shared.normal() + 0.02 * own.normal() for name in metrics.get(run.task, ["slots"])}
            | {"score": value, "words": words + i % 3, "wanted_words": 20, "tokens": words + 2, "kl": 1.0}
            | {"surprise": 0.7, "faults": {"wrong value": 2 if value < 0.3 else 1}}
            for i in range(prompts)
        ]

    curve = [
        {"step": step, "seconds": step, "critic_calls": 32 * step, "sampled_tokens": 700 * step}
        | dict.fromkeys(metrics.get(run.task, ["slots"]), 0.2 + gain * step / 40)
        | {"blamed_probability": 0.4 - gain * step / 40, "other_probability": 0.6}
        for step in (0, 5, 10, 20, 30, 40)
    ]
    return {
        "task": run.task,
        "arm": run.arm,
        "said": run.said,
        "seed": run.seed,
        "half": run.half,
        "chosen": run.settings,
        "start": "0a1b",
        "samples_per_step": 32,
        "curve": curve,
        "before": rows(0.2),
        "after": rows(0.2 + gain),
        "quick": False,
        "machine": {"cpu": "CPU", "cores": 2, "torch": "2.0"},
        "commit": "0123456789abcdef",
        **fields,
    }


def of_arm(arm: str, gain: float, seeds: Sequence[int] = (10, 11, 12), words: int = 20) -> dict[int, Any]:
    return {seed: make_run(Run("questions", arm, "all", seed), gain, words) for seed in seeds}


def test_a_difference_has_an_interval_around_it() -> None:
    found = difference(of_arm("scalar rloo", 0.1), of_arm(OURS, 0.15), "f1")
    assert found["low"] < found["difference"] < found["high"]
    assert found["difference"] == pytest.approx(0.05, abs=0.01)
    assert found["low"] > 0
    assert found["detectable"] == pytest.approx(2.8 * (found["high"] - found["low"]) / (2 * 1.96), rel=0.15)
    assert found["at_equal_length"] is None


def test_arms_of_other_seeds_are_not_compared() -> None:
    assert difference(of_arm("scalar rloo", 0.1, [10]), of_arm(OURS, 0.2, [11]), "f1") == {"difference": None}


def test_a_gain_that_comes_from_length_is_gone_at_equal_length() -> None:
    short, long = of_arm("scalar rloo", 0.0), of_arm(OURS, 0.0)
    for seed, run in long.items():
        for i, (row, other) in enumerate(zip(run["after"], short[seed]["after"], strict=True)):
            row["words"] = other["words"] * (1 + i % 3)
            row["f1"] = other["f1"] + 0.1 * np.log((row["words"] + 1) / (other["words"] + 1))
    found = difference(short, long, "f1")
    assert found["low"] > 0.03
    assert found["at_equal_length"]["difference"] == pytest.approx(0, abs=1e-6)
    for run in long.values():
        for row in run["after"]:
            row["words"] *= 4
    assert difference(short, long, "f1")["at_equal_length"] is None


def test_the_comparison_is_with_the_better_scalar_arm() -> None:
    arms = {"scalar rloo": 0.1, "scalar ppo": 0.05, "scalar rloo, holistic": 0.3, OURS: 0.2}
    rows = {row["arm"]: row for row in compare({arm: of_arm(arm, gain) for arm, gain in arms.items()}, ["f1", "exact"])}
    assert rows[OURS]["against"] == "scalar rloo"
    assert "against" not in rows["scalar rloo"]
    assert rows[OURS]["samples"] == pytest.approx({"samples": 640, "share": 0.5})
    assert rows["scalar ppo"]["samples"] == {"samples": None, "share": None}
    assert rows[OURS]["critic_calls_per_point"] == pytest.approx(1280 / 20, rel=0.05)
    assert rows[OURS]["faults_before"] == {"wrong value": 2}
    assert rows[OURS]["faults"] == {"wrong value": 1}


def test_samples_are_read_off_between_evaluations() -> None:
    assert first_at([(0, 0.0), (100, 1.0)], 0.25) == 25
    assert first_at([(0, 0.5), (100, 1.0)], 0.25) == 0
    assert first_at([(0, 0.0), (100, 0.2)], 0.25) is None
    assert samples_to([(0, 0.0), (100, 1.0)], [(0, 0.0), (50, 0.5), (100, 0.4)]) == {"samples": 50, "share": 1.0}
    assert samples_to([(0, 0.5), (100, 1.0)], [(0, 0.5), (100, 0.4)]) == {"samples": 0, "share": 0.0}
    assert samples_to([(0, 0.5), (100, 0.5)], [(0, 0.5), (100, 0.6)]) == {"samples": None, "share": None}


def write(folder: Path, run: Run, **fields: Any) -> None:
    write_run(folder / run.file_name, make_run(run, **fields))


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Everything that the report writes goes here."""
    (tmp_path / "pictures").mkdir()
    monkeypatch.setattr(evidence_report, "DOCS", tmp_path)
    monkeypatch.setattr(harness, "RESULTS", tmp_path)
    monkeypatch.setattr(evidence_report, "SETTINGS_FILE", tmp_path / "settings.json")
    return tmp_path


def make_report(folder: Path, out: Path) -> tuple[dict[str, Any], str, int]:
    with pytest.raises(SystemExit) as stopped:
        evidence_report.report(out, argparse.Namespace(quick=False, device="cpu"))
    page = (folder / "evidence.md").read_text(encoding="utf-8")
    assert isinstance(stopped.value.code, int)
    return json.loads((folder / "evidence.json").read_text(encoding="utf-8")), page, stopped.value.code


def test_a_complete_campaign_in_which_we_win_meets_every_bar(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evidence_stats.RESAMPLES", 100)
    out = written / "runs"
    out.mkdir()
    for run in plan_report():
        write(out, run, gain=0.25 if run.arm == OURS else 0.1, prompts=12)
    result, page, code = make_report(written, out)
    assert (result["ok"], result["complete"], code) == (True, True, 0)
    assert result["machine"]["cpu"] == "CPU"
    assert result["commit"] == "0123456789abcdef"
    assert "Complete: " in page
    assert "not met" not in page
    assert page.count("#### ") == 8
    assert "| probability of words after samples | 0 | 160 | 320 | 640 | 960 | 1,280 |" in page
    assert "| blamed, corrections rloo_tokens | 0.400 | 0.369 | 0.338 | 0.275 | 0.212 | 0.150 |" in page
    assert "| other, corrections rloo_tokens | 0.600 | 0.600 | 0.600 | 0.600 | 0.600 | 0.600 |" in page
    assert "| arm | seeds | rouge_l (before) | bleu | against scalar |" in page
    for task in ("questions", "records16", "summaries", "code"):
        picture = (written / "pictures" / f"evidence-{task}.svg").read_text(encoding="utf-8")
        assert picture.count("<polyline") == 2 * (len(MAIN_ARMS) - len(LEFT_OUT.get(task, ()))) - 1


def test_a_page_of_some_runs_says_which_are_missing(written: Path) -> None:
    out = written / "runs"
    out.mkdir()
    for arm in ("scalar rloo", OURS):
        write(out, Run("questions", arm, "one", 10), gain=0.1, start=arm)
    write(out, Run("questions", "spans local", "one", 10), gain=0.1, quick=True)
    result, page, code = make_report(written, out)
    assert (result["ok"], result["complete"], code) == (False, False, 1)
    assert f"**Not complete: {len(plan_report()) - 2} runs are missing" in page
    line = next(line for line in page.splitlines() if line.startswith("- questions, one: "))
    assert f"{OURS} ({len(REPORT_SEEDS) - 1} seeds)" in line
    assert f"spans local ({len(REPORT_SEEDS)} seeds)" in line
    assert "No settings have been chosen." in page
    assert "The runs of questions start from 2 models." in page


def test_a_page_without_runs_can_be_written(written: Path) -> None:
    result, page, code = make_report(written, written)
    assert (result["complete"], code) == (False, 1)
    assert "**Not complete: " in page


def test_the_settings_with_the_best_metric_are_chosen() -> None:
    settings = grid("questions", "spans local")
    runs = [
        make_run(Run("questions", "spans local", "all", seed, "select", one), gain=0.1 * i)
        for seed in (0, 2)
        for i, one in enumerate(settings[:2])
    ]
    runs.append(make_run(Run("questions", "spans local", "all", 1, "select", settings[0]), gain=0.9))
    chosen = evidence_select.choose(runs)["questions, spans local"]
    assert chosen["settings"] == settings[1]
    assert [entry["runs"] for entry in chosen["tried"]] == [2, 2]
    assert chosen["missing"] == 1


@pytest.mark.parametrize(("task", "count"), [("questions", 3), ("code", 2)])
def test_every_arm_has_as_many_settings_to_choose_from(task: str, count: int) -> None:
    for arm in (*MAIN_ARMS, "corrections rloo", "DPO", "TRL SDPO"):
        assert len({json.dumps(one, sort_keys=True) for one in grid(task, arm)}) == len(grid(task, arm)) == count


def test_the_settings_of_a_run_are_those_of_its_arm() -> None:
    chosen: dict[str, dict[str, float]] = {"questions, scalar rloo": {"learning_rate": 1e-4, "corrections.weight": 0.3}}
    assert chosen_settings("questions", "TRL GRPO", chosen) == chosen["questions, scalar rloo"]
    run = Run("questions", HOLISTIC, "one", 10, settings=chosen_settings("questions", HOLISTIC, chosen))
    assert run.trainer_settings() == {"learning_rate": 1e-4, "corrections": {"weight": 0.3}}
    with pytest.raises(SystemExit, match="nothing chosen for questions, spans local"):
        chosen_settings("questions", "spans local", chosen)


def test_seeds_come_one_after_the_other() -> None:
    runs = plan_report(["records16"], further_arms=[])
    assert len(runs) == 5 * (2 * len(MAIN_ARMS) - 1)
    assert [run.seed for run in runs] == sorted(run.seed for run in runs)


def test_a_reward_model_says_everything_that_it_says() -> None:
    runs = plan_report(["questions"], [], ["reward model, spans", "ILF"], seeds=[10])
    assert [(run.arm, run.said) for run in runs] == [("reward model, spans", "all"), ("ILF", "all"), ("ILF", "one")]


def test_only_settings_that_are_missing_are_looked_for() -> None:
    wanted = plan_report(["questions"], ["spans local", "scalar rloo", HOLISTIC], ["best of n", "TRL GRPO"], seeds=[10])
    runs = plan_selection(wanted, {"questions, spans local": {}})
    assert {(run.task, run.arm, run.said, run.half) for run in runs} == {("questions", "scalar rloo", "all", "select")}
    assert [run.settings for run in runs] == grid("questions", "scalar rloo")


def runs_of(job: Job) -> list[Run]:
    return [Run(**fields) for fields in json.loads(job.arguments[2])]


def test_a_campaign_prepares_selects_and_reports(tmp_path: Path) -> None:
    wanted = plan_report(["questions", "code"], [SPANS_ALONE], ["best of n", "TRL GRPO"], ["all"], [10])
    chosen: dict[str, dict[str, float]] = {f"questions, {SPANS_ALONE}": {"learning_rate": 1.0}}
    plan = make_plan(wanted, tmp_path, chosen, {"code": False, "records16": False}, has_reward_model=False)
    assert plan.next_job(4, chosen) == Job("code", ("warm-up", "--tasks", "code"))
    selection = plan.next_job(4, chosen)  # that of code waits for its starting model
    assert selection is not None
    assert {(run.task, run.arm, run.half) for run in runs_of(selection)} == {("questions", "scalar rloo", "select")}
    plan.running.append(selection)
    alone = plan.next_job(4, chosen)  # TRL waits for its settings
    assert alone is not None
    assert [(run.arm, run.settings) for run in runs_of(alone)] == [
        ("best of n", {}),
        (SPANS_ALONE, {"learning_rate": 1.0}),
    ]
    assert plan.next_job(4, chosen) is None
    plan.running.remove(selection)
    chosen["questions, scalar rloo"] = {"learning_rate": 2.0}
    trl = plan.next_job(4, chosen)
    assert trl is not None
    assert [(run.arm, run.settings) for run in runs_of(trl)] == [("TRL GRPO", {"learning_rate": 2.0})]
    plan.prepared.add("code")
    code = plan.next_job(4, chosen)
    assert code is not None
    assert {(run.task, run.half) for run in runs_of(code)} == {("code", "select")}
    assert [run.task for run in plan.waiting] == ["code"]


def test_few_processes_make_a_single_run(tmp_path: Path) -> None:
    wanted = plan_report(["questions"], ["spans local"], ["TRL GRPO"], ["all"], [10, 11, 12])
    chosen: dict[str, dict[str, float]] = {f"questions, {arm}": {} for arm in ("spans local", "scalar rloo")}
    plan = make_plan(wanted, tmp_path, chosen, {}, has_reward_model=False)
    for expected in (["TRL GRPO"], ["TRL GRPO"], ["spans local"] * 3):
        job = plan.next_job(4, chosen)
        assert job is not None
        assert [run.arm for run in runs_of(job)] == expected
        plan.running.append(job)
    assert plan.next_job(4, chosen) is None
    del plan.running[0]
    last = plan.next_job(4, chosen)
    assert last is not None
    assert [run.arm for run in runs_of(last)] == ["TRL GRPO"]


def test_the_scalar_arm_of_another_trainer_has_the_seeds_of_the_main_arms() -> None:
    runs = plan_report(["questions"], [], ["TRL GRPO", "TRL SDPO"])
    assert [run.seed for run in runs if run.arm == "TRL GRPO"] == list(REPORT_SEEDS)
    assert [run.seed for run in runs if run.arm == "TRL SDPO"] == list(REPORT_SEEDS)[:3]


def test_a_campaign_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    wanted = plan_report(["questions"], ["spans local"], [], ["all"], [10, 11])
    write(tmp_path, wanted[0], gain=0.1)
    chosen: dict[str, dict[str, float]] = {"questions, spans local": {"learning_rate": 1.0}}
    plan = make_plan(wanted, tmp_path, chosen, {}, has_reward_model=False)
    assert plan.waiting == wanted[1:]


def test_a_campaign_counts_what_failed_and_keeps_its_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys; print(sys.argv[1:], os.environ['TEXT2GRAD_COMMIT']); sys.exit(sys.argv[1] == 'warm-up')",
        encoding="utf-8",
    )
    monkeypatch.setattr(evidence_campaign, "SCRIPT", str(script))
    monkeypatch.setattr(evidence_campaign, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(evidence_campaign, "commit", lambda: "0123abcd")
    wanted = plan_report(["questions", "code"], [SPANS_ALONE], [], ["all"], [10])
    settings = {"chosen": {f"questions, {SPANS_ALONE}": {"settings": {}}}}
    (tmp_path / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    chosen: dict[str, dict[str, float]] = {f"questions, {SPANS_ALONE}": {}, f"code, {SPANS_ALONE}": {}}
    plan = make_plan(wanted, tmp_path, chosen, {"code": False}, has_reward_model=False)
    failed = run_plan(plan, tmp_path, ["--device", "x"], tmp_path / "settings.json", lambda: None, 2, 4, 60.0)
    assert failed == 1
    assert "1 runs not started, 0 jobs cut off, 1 failed" in capsys.readouterr().out
    log = (tmp_path / "logs" / "report-questions-all-spans_rloo_tokens-10.log").read_text(encoding="utf-8")
    assert "'--device', 'x'] 0123abcd" in log


def test_a_run_that_fails_is_tried_once_more(tmp_path: Path) -> None:
    wanted = plan_report(["questions"], ["spans local"], [], ["all"], [10, 11])
    chosen: dict[str, dict[str, float]] = {"questions, spans local": {"learning_rate": 1.0}}
    plan = make_plan(wanted, tmp_path, chosen, {}, has_reward_model=False)
    job = plan.next_job(4, chosen)
    assert job is not None
    assert plan.next_job(4, chosen) is None
    write(tmp_path, wanted[0], gain=0.1)
    plan.try_again(job, tmp_path)
    again = plan.next_job(4, chosen)
    assert again is not None
    assert [run.name for run in again.runs] == [wanted[1].name]
    plan.try_again(again, tmp_path)
    assert plan.next_job(4, chosen) is None


def test_slow_tasks_come_last(tmp_path: Path) -> None:
    wanted = plan_report(["code", "questions"], [SPANS_ALONE], ["ILF"], ["all"], [10])
    waiting = make_plan(wanted, tmp_path, {}, {}, has_reward_model=False).waiting
    assert [(run.task, run.arm) for run in waiting if run.half == "report"] == [
        ("questions", "ILF"),
        ("questions", SPANS_ALONE),
        ("code", SPANS_ALONE),
    ]


def test_the_best_and_the_worst_answer_of_a_prompt_are_a_pair() -> None:
    scores = [0.1, 0.5, -0.2, 0.3, 0.2, 0.2]
    feedback = [Feedback(critic="c", score=score) for score in scores]
    feedback[0] = Feedback.failure("c", "no")
    assert rank(feedback[:4], 4) == [(1, 2)]
    assert rank(feedback[4:], 2) == []


def test_reflection_reads_what_the_other_arms_learn_from() -> None:
    span = Span(start=0, end=4, label="poor", reason="wrong town", replacement="Ghent")
    feedback = Feedback(critic="c", spans=[span], omissions=[Omission(text="the day")])
    example = Example(id="1", prompt="Where?", completion="Lund")
    faults = list_faults(feedback, example.completion)
    assert faults == ['- "Lund": wrong town. It should be "Ghent".', "- Missing: the day."]
    assert [message["role"] for message in ask_again(example, faults).model_dump()["prompt"]] == [
        "user",
        "assistant",
        "user",
    ]


def test_one_fault_says_nothing_of_the_whole_unless_asked_for_a_number() -> None:
    spans = [Span(start=i, end=i + 1, label="poor", severity=0.5) for i in range(3)]

    class Everything:
        def critique(self, examples: Sequence[Example]) -> list[Feedback]:
            return [Feedback(critic="c", spans=spans, score=-0.9) for _ in examples]

    example = Example(id="1", prompt="p", completion="abc")
    (one,) = OneFault(Everything()).critique([example])
    assert len(one.spans) == 1
    assert one.score is None
    assert OneFault(Everything(), "comment").critique([example])[0] == one.model_copy(update={"score": -0.5})
    assert OneFault(Everything(), "whole").critique([example])[0].score == -0.9


def test_runs_keep_few_texts_and_short_numbers() -> None:
    rows = compact([{"f1": 1 / 3, "faults": {"wrong value": 1}, "text": "a", "reference": ["b"]}] * (KEPT_TEXTS + 1))
    assert rows[0] == {"f1": 0.33333, "faults": {"wrong value": 1}, "text": "a", "reference": ["b"]}
    assert rows[-1] == {"f1": 0.33333, "faults": {"wrong value": 1}}
