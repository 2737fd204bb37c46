import pytest

from text2grad.trainer.metrics import repetition


def test_repetition_is_the_share_of_runs_that_came_before() -> None:
    assert repetition([1, 2, 3, 4, 5, 6]) == 0
    assert repetition([7, 7, 7, 7, 7, 7]) == pytest.approx(2 / 3)  # three runs of four, one of them new
    assert repetition([1, 2, 3]) == 0
