from __future__ import annotations

from collections.abc import Sequence

import pytest

from text2grad.critics.base import collect_feedback
from text2grad.errors import UserError
from text2grad.schema import Example, Feedback, Span

EXAMPLES = [Example(id="a", prompt="p", completion="four"), Example(id="b", prompt="p", completion="five!")]


class Says:
    def __init__(self, feedback: list[Feedback]) -> None:
        self.feedback = feedback

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        return self.feedback


def blame(start: int, end: int) -> Feedback:
    return Feedback(critic="says", spans=[Span(start=start, end=end, label="poor")])


def test_what_points_outside_its_answer_is_a_failure_and_the_rest_stands() -> None:
    outside, inside = collect_feedback(Says([blame(0, 5), blame(0, 5)]), EXAMPLES)
    assert outside.status == "failed"
    assert inside == blame(0, 5)


def test_one_comment_is_owed_for_each_answer() -> None:
    with pytest.raises(UserError, match="Says returned 1 feedbacks for 2 examples"):
        collect_feedback(Says([blame(0, 1)]), EXAMPLES)
