"""Signs of trouble: each planted once, and absent from a healthy run."""

from __future__ import annotations

from typing import Any

from text2grad.report.read import Evaluation, MetricChange, Run, Sample
from text2grad.report.trouble import Check, find_trouble

HEALTHY = [
    {"step": step, "samples": 4, "critic/failed": 0, "completions/mean_length": 20.0, "grad_norm": 1.0}
    for step in range(1, 31)
]
RISE = MetricChange(before=0.0, after=1.0, difference=1.0, low=0.5, high=1.5)
FALL = MetricChange(before=1.0, after=0.0, difference=-1.0, low=-1.5, high=-0.5)


def sample(step: int, completion: str = "", number: int = 0, **fields: Any) -> Sample:
    text = completion or f"answer {step}.{number}"
    record = {"step": step, "sample": number, "prompt": f"p{step}.{number}", "completion": text, **fields}
    return Sample.model_validate(record)


def checks(**fields: Any) -> dict[str, Check]:
    whole: dict[str, Any] = {"name": "r", "config": None, "model": None, "metrics": HEALTHY, "num_samples_recorded": 0}
    whole |= {"samples": [sample(step) for step in range(1, 31)], "evaluation": None}
    return {check.title: check for check in find_trouble(Run(**(whole | fields)))}


def test_a_healthy_run_has_no_sign() -> None:
    found = checks(evaluation=Evaluation(n=1, metrics={"score": RISE, "rouge_l": RISE}))
    assert len(found) == 5
    assert all(check.ok for check in found.values())


def test_failed_critiques_are_counted_by_reason() -> None:
    failed = {"critic": "c", "status": "failed", "error": "timeout: 30 s"}
    samples = [sample(1), sample(2, feedback=failed), sample(3, feedback=failed | {"error": "no JSON"})]
    metrics = [*HEALTHY[:-1], HEALTHY[-1] | {"critic/failed": 40}]
    check = checks(samples=samples, metrics=metrics)["Failed critiques"]
    assert not check.ok
    assert check.sentence.startswith("40 of 120 critiques failed (33.3%)")
    assert check.details == [("timeout", 1), ("no JSON", 1)]
    assert check.samples == [1, 2]


def test_reasons_come_from_the_steps_where_no_logged_sample_failed() -> None:
    metrics = [{"step": 1, "samples": 4, "critic/failed": 4, "critic/error": "late: 3"}]
    assert checks(metrics=metrics)["Failed critiques"].details == [("late", 1)]


def test_empty_and_truncated_completions() -> None:
    samples = [sample(1, " "), sample(2, truncated=True), sample(3, truncated=True)]
    check = checks(samples=samples)["Degenerate lengths"]
    assert not check.ok
    assert "1 are empty and 2 cut at the length limit; in the last third of the run 100% are cut" in check.sentence
    assert check.samples == [0, 2, 1]


def test_a_length_that_drifts() -> None:
    metrics = [{**m, "completions/mean_length": 20.0 if m["step"] <= 15 else 60.0} for m in HEALTHY]
    check = checks(metrics=metrics)["Degenerate lengths"]
    assert not check.ok
    assert "3.00 times as long as at the start" in check.sentence


def test_one_answer_to_several_prompts() -> None:
    samples = [sample(1, "Yes,  indeed."), sample(2, "Yes, indeed."), sample(3, "No."), sample(3, "No.", prompt="p3.0")]
    check = checks(samples=samples)["Repeated answers"]
    assert not check.ok
    assert check.details == [("“Yes, indeed.” (prompts)", 2)]
    assert check.samples == [0]


def test_answers_that_go_round_in_circles() -> None:
    metrics = [m | {"completions/repetition": 0.5} for m in HEALTHY]
    assert not checks(metrics=metrics)["Repeated answers"].ok


def test_a_score_that_rises_while_an_unseen_metric_falls() -> None:
    evaluation = Evaluation(n=9, metrics={"score": RISE, "rouge_l": FALL, "words": FALL})
    check = checks(evaluation=evaluation)["Score against unseen metrics"]
    assert not check.ok
    assert check.sentence == "The critic’s score rose while ROUGE-L fell: the policy may be gaming the critic."
    assert checks(evaluation=Evaluation(n=9, metrics={"score": FALL, "rouge_l": FALL}))[
        "Score against unseen metrics"
    ].ok


def test_warnings_of_the_run_are_shown() -> None:
    warning = "the reward has risen while completions became 2.00 times as long as at the start; check"
    check = checks(metrics=[*HEALTHY[:-1], HEALTHY[-1] | {"warnings": [warning]}])["Score against unseen metrics"]
    assert (check.ok, check.details) == (False, [(warning, 1)])


def test_skipped_and_idle_updates() -> None:
    metrics = [HEALTHY[0] | {"skipped": 1.0, "update_error": "the loss is nan"}, HEALTHY[1] | {"grad_norm": 0.0}]
    check = checks(metrics=metrics)["Skipped and idle updates"]
    assert not check.ok
    assert check.sentence == "Of 2 updates 1 were skipped, and 1 had nothing to learn from."
    assert check.details == [("the loss is nan", 1)]


def test_of_another_trainer_nothing_is_said_that_it_does_not_record() -> None:
    found = checks(metrics=[{"step": 1, "samples": 30, "reward": 0.5}], is_foreign=True)
    assert {title: check.sentence for title, check in found.items()} == {
        "Degenerate lengths": "Of 30 logged completions 0 are empty.",
        "Repeated answers": "No answer was given to two prompts.",
    }
    assert "Skipped and idle updates" in checks(metrics=[{"step": 1, "grad_norm": 0.0}], is_foreign=True)


def test_a_run_without_records_has_no_checks() -> None:
    assert checks(metrics=[], samples=[]) == {}
