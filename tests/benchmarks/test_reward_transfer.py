"""How the transfer benchmark counts corrections, and how it ranks distances."""

import pytest
from reward_transfer_job import auroc, count_replacements, replaced

from text2grad.reward_model.evaluate import Prediction
from text2grad.reward_model.feedback import TokenProbabilities
from text2grad.schema import Example, Feedback, Span

TEXT = "We meet in Paris on Friday at noon."


def poor(words: str, replacement: str | None, kind: str = "date") -> Span:
    start = TEXT.index(words)
    return Span(start=start, end=start + len(words), label="poor", critic=f"corruption:{kind}", replacement=replacement)


def prediction(gold: list[Span], predicted: list[Span]) -> Prediction:
    example = Example(id="1", prompt="p", completion=TEXT, feedback=Feedback(critic="c", spans=gold))
    empty = TokenProbabilities([], None)  # type: ignore[arg-type]
    return Prediction(example, Feedback(critic="r", spans=predicted), empty)


@pytest.mark.parametrize(
    ("guess", "found", "right"),
    [
        (poor("Friday", "Monday"), 1, 1),
        (poor("Friday", "monday"), 1, 1),
        (poor("on Friday", "on Monday"), 1, 1),
        (poor("on Friday", "Monday"), 1, 0),
        (poor("Friday", "Tuesday"), 1, 0),
        (poor("Friday", None), 1, 0),
        (poor("noon", "Monday"), 0, 0),
    ],
)
def test_a_correction_is_right_if_the_text_then_reads_right(guess: Span, found: int, right: int) -> None:
    counts = count_replacements([prediction([poor("Friday", "Monday"), poor("in Paris", "", "added phrase")], [guess])])
    assert counts["spans"] == {"date": 1, "added phrase": 1}
    assert counts["found"].get("date", 0) == found
    assert counts["right"].get("date", 0) == right
    assert counts["recall"] == found / 2


def test_a_deletion_leaves_the_rest() -> None:
    assert replaced(TEXT, poor("in Paris", "")) == ["we", "meet", "on", "friday", "at", "noon"]


def test_auroc_by_hand() -> None:
    assert auroc([1.0, 2.0], [3.0]) == 1.0
    assert auroc([1.0, 3.0], [2.0]) == 0.5
    assert auroc([1.0], [1.0]) == 0.5
    assert auroc([], [1.0]) is None
