"""Records told as a line of words: what the critic names, and as which number."""

import pytest
from evidence_map import Cell, cells, draw, gain
from tiny_records import RecordCritic, Task

from text2grad.schema import Example, Feedback

TASK = Task(fields=2)


def comment(completion: str, **settings: float) -> Feedback:
    example = Example(id="1", prompt="p", completion=completion, meta={"record": [1, 2]})
    return RecordCritic(TASK, **settings).critique([example])[0]


@pytest.mark.parametrize(
    ("completion", "score", "faults"),
    [
        ("w0.0 v0.1 w1.0 v1.2", 1, []),
        ("w0.0 v0.1 w1.0 v1.3", 0, [("v1.3", "v1.2")]),
        ("v0.1 w1.0 v1.2", -1, [("v0.1", "w0.0")]),  # what follows is out of step: not named, and not told
        ("w0.0 v0.1", 0, []),
        ("w0.0 v0.1 w1.0 v1.2 v1.2 w0.0", 0, [("v1.2", "")]),
        ("", -1, []),
    ],
)
def test_faults_have_a_place_a_correction_and_a_number(
    completion: str, score: float, faults: list[tuple[str, str]]
) -> None:
    feedback = comment(completion)
    assert feedback.score == score
    assert [(completion[span.start : span.end], span.replacement) for span in feedback.spans] == faults


def test_one_fault_is_named_of_several() -> None:
    feedback = comment("w0.0 v0.5 w1.0 v1.5", mentioned=0.0)
    assert len(feedback.spans) == 1
    assert feedback.score == 0


def test_a_moved_critique_is_about_other_words() -> None:
    completion = "w0.0 v0.5 w1.0 v1.5"
    places = {(span.start, span.replacement) for span in comment(completion, moved=1.0).spans}
    assert {right for _, right in places} == {"v0.1", "v1.2"}
    assert places != {(5, "v0.1"), (15, "v1.2")}


def test_the_map_is_drawn_of_the_cells_that_are_there() -> None:
    arms = {arm: {"rate": 1e-3, "curves": [[0.5, end]] * 3} for arm, end in (("scalar", 0.6), ("spans", 0.7))}
    result = {"arms": arms | {"corrections": arms["spans"]}, "seconds": 1.0}
    assert gain(result, "spans") == pytest.approx((0.1, 0))
    picture = draw({Cell(8, "one", 32, 0.0): result})
    assert picture.count("+0.10") == 2
    assert len({cell.name for cell in cells()}) == len(cells()) == 36 + 12 + 4 + 2
