import pytest

from text2grad.errors import UserError
from text2grad.evaluation.comparison import compare
from text2grad.evaluation.metrics import critic_score, rouge_l
from text2grad.schema import Example, Feedback, Omission, Span


def completed(name: str, completion: str, feedback: Feedback, reference: str | None = "the cat sat") -> Example:
    return Example(id=name, prompt="p", completion=completion, reference=reference, feedback=feedback)


BLAMED = Feedback(critic="c", spans=[Span(start=0, end=3, label="poor")], omissions=[Omission(text="x", severity=0.5)])
PRAISED = Feedback(critic="c", spans=[Span(start=0, end=3, label="good", severity=0.5)])


def test_metrics_before_and_after() -> None:
    before = [completed("1", "the dog ran", BLAMED), completed("2", "the dog ran", BLAMED)]
    after = [completed("1", "the cat sat", PRAISED), completed("2", "the cat sat", PRAISED)]
    evaluation = compare(before, after, resamples=50, seed=0)
    metrics = evaluation["metrics"]
    assert (metrics["score"]["before"], metrics["score"]["after"]) == (-1.5, 0.5)
    assert metrics["rouge_l"]["after"] == 1.0
    assert metrics["rouge_l"]["before"] == pytest.approx(1 / 3)
    assert metrics["blamed spans"]["difference"] == -1
    assert metrics["praised spans"]["difference"] == 1
    assert metrics["omissions"]["difference"] == -1
    assert evaluation["examples"][0]["before"]["completion"] == "the dog ran"


def test_a_failed_critique_takes_only_its_own_pair_out() -> None:
    failed = completed("2", "?", Feedback.failure("c", "timeout"))
    evaluation = compare(
        [completed("1", "one", BLAMED), failed], [completed("1", "two", PRAISED)] * 2, resamples=10, seed=0
    )
    assert (evaluation["n"], evaluation["failed"]) == (1, 1)
    with pytest.raises(UserError, match="every critique"):
        compare([failed], [failed], resamples=10, seed=0)


def test_without_references_there_is_no_rouge() -> None:
    pair = [completed("1", "the cat", BLAMED, reference=None)]
    assert "rouge_l" not in compare(pair, pair, resamples=10, seed=0)["metrics"]


def test_single_metrics() -> None:
    assert rouge_l("the cat sat", ["a dog", "the cat sat"]) == 1.0
    assert critic_score(BLAMED) == -1.5
    assert critic_score(Feedback(critic="c", score=3.0)) == 3.0
