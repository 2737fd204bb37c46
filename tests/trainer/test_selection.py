from __future__ import annotations

import math

from text2grad.trainer.monitor import HELDOUT
from text2grad.trainer.selection import Evaluated, Selection


def observed(*scores: float | None) -> tuple[Selection, list[bool]]:
    selection = Selection()
    return selection, [selection.observe({"step": 2 * i, HELDOUT: score}) for i, score in enumerate(scores, 1)]


def test_a_better_score_is_the_best_so_far_and_an_equal_one_is_not() -> None:
    selection, improved = observed(-2.0, -3.0, -1.0, -1.0)
    assert improved == [True, False, True, False]
    assert selection.best == Evaluated(step=6, score=-1.0)


def test_steps_without_a_score_change_nothing() -> None:
    selection, improved = observed(None, math.nan, 0.5, None, math.nan)
    assert improved == [False, False, True, False, False]
    assert not Selection().observe({"step": 1, "reward": 3.0})
    assert selection.reason_to_stop(patience=1) is None, "nothing was measured since the best"


def test_patience_counts_evaluations_since_the_best() -> None:
    selection, _ = observed(0.1, 0.4, 0.3)
    assert selection.reason_to_stop(patience=1) == (
        "early stopping: the held-out score has not risen above 0.4, that of step 4 (evaluations since: 1)"
    )
    assert selection.reason_to_stop(patience=2) is None
    selection.observe({"step": 8, HELDOUT: 0.4})
    assert selection.reason_to_stop(patience=2) is not None
    selection.observe({"step": 10, HELDOUT: 0.41})
    assert selection.reason_to_stop(patience=1) is None


def test_without_patience_or_scores_there_is_no_reason_to_stop() -> None:
    assert observed(3.0, 2.0, 1.0)[0].reason_to_stop(patience=None) is None
    assert Selection().reason_to_stop(patience=1) is None
