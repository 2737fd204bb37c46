"""Metrics of answers and their means over prompts."""

from __future__ import annotations

import pytest

from text2grad.errors import UserError
from text2grad.evaluation.answers import METRICS, group_answers, prompt_values, summarise
from text2grad.schema import Example, Feedback


def answer(name: str, completion: str = "a fox", score: float | None = None, passed: bool | None = None) -> Example:
    said = None if score is None else Feedback(critic="c", score=score)
    meta = {} if passed is None else {"passed": passed}
    return Example(id=name, prompt=name, completion=completion, reference="a fox", feedback=said, meta=meta)


def test_a_prompt_counts_once_however_many_answers_it_has() -> None:
    answers = [answer("a", score=1.0), answer("a", score=0.0), answer("b", score=-1.0)]
    summary = summarise(answers, resamples=50, seed=0)
    assert (summary["prompts"], summary["answers"]) == (2, 3)
    assert summary["metrics"]["score"]["mean"] == -0.25
    assert summary["metrics"]["score"]["low"] >= -1
    assert "passed" not in summary["metrics"]


def test_a_failed_critique_is_counted_and_left_out() -> None:
    failed = answer("b").model_copy(update={"feedback": Feedback.failure("c", "timeout")})
    summary = summarise([answer("a", score=1.0), failed], resamples=10, seed=0)
    assert summary["failed"] == 1
    assert summary["metrics"]["score"] == {"mean": 1.0, "low": 1.0, "high": 1.0, "n": 1}
    assert summary["metrics"]["exact_match"]["n"] == 2


def test_prompts_with_the_same_id_and_another_text_are_two() -> None:
    other = answer("a").model_copy(update={"prompt": "another"})
    assert prompt_values(group_answers([answer("a"), other]), METRICS["words"]) == {("a", "a"): 2, ("a", "another"): 2}


def test_pass_at_k_is_averaged_over_problems() -> None:
    answers = [answer("a", passed=value) for value in (True, False, False)]
    answers += [answer("b", passed=False) for _ in range(3)]
    metrics = summarise(answers, 10, 0, ks=[1, 3])["metrics"]
    assert metrics["pass@1"]["mean"] == pytest.approx(1 / 6)
    assert metrics["pass@3"]["mean"] == 0.5
    assert "passed" not in metrics
    with pytest.raises(UserError, match="pass@4 needs at least 4 answers"):
        summarise(answers, 10, 0, ks=[4])


@pytest.mark.parametrize("value", ["2021-01-01", 3, ["yes"], None])
def test_a_column_of_the_name_passed_is_no_result_of_tests(value: object) -> None:
    example = answer("a").model_copy(update={"meta": {"passed": value}})
    assert "passed" not in summarise([example], resamples=10, seed=0)["metrics"]
