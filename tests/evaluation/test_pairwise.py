"""Paired comparison of sets of answers."""

from __future__ import annotations

import pytest

from text2grad.errors import UserError
from text2grad.evaluation.pairwise import AnswerSet, compare_sets, shared_prompts, summarise_verdicts
from text2grad.schema import Example, Feedback


def answers(name: str, scores: dict[str, list[float]]) -> AnswerSet:
    examples = [
        Example(id=key, prompt=f"p{key}", completion="one two", feedback=Feedback(critic="c", score=score))
        for key, values in scores.items()
        for score in values
    ]
    return AnswerSet.of(name, examples)


def test_differences_are_over_the_prompts_in_common() -> None:
    old = answers("old", {"1": [0.0, 1.0], "2": [0.0], "3": [9.0]})
    new = answers("new", {"2": [1.0], "1": [1.5], "4": [9.0]})
    prompts = shared_prompts([old, new])
    assert [name for name, _ in prompts] == ["1", "2"]
    result = compare_sets(old, new, prompts, resamples=50, seed=0)
    assert result["score"] == {"before": 0.25, "after": 1.25, "difference": 1.0, "low": 1.0, "high": 1.0, "n": 2}
    assert result["words"]["difference"] == 0
    assert "rouge_l" not in result


def test_a_prompt_without_a_value_in_one_set_is_left_out_of_that_metric() -> None:
    old, new = answers("old", {"1": [0.0], "2": [0.0]}), answers("new", {"1": [1.0], "2": [5.0]})
    ((_, group), *_) = reversed(new.groups.items())
    group[0] = group[0].model_copy(update={"feedback": Feedback.failure("c", "timeout")})
    result = compare_sets(old, new, shared_prompts([old, new]), 10, 0)
    assert (result["score"]["n"], result["words"]["n"]) == (1, 2)
    assert result["score"]["difference"] == 1.0


def test_sets_without_a_common_prompt_are_refused() -> None:
    with pytest.raises(UserError, match="a and b have no prompt in common"):
        shared_prompts([answers("a", {"1": [0]}), answers("b", {"2": [0]})])


def test_verdicts_are_counted_and_the_failed_left_out() -> None:
    result = summarise_verdicts(["second", "second", "first", "tie", None], 100, 0)
    assert [result[name] for name in ("wins", "losses", "ties", "failed")] == [2, 1, 1, 1]
    assert result["preference"]["mean"] == 0.25
    assert summarise_verdicts([None], 10, 0)["preference"] is None
