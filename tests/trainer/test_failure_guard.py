from __future__ import annotations

from pathlib import Path

import pytest

from text2grad.errors import UserError
from text2grad.trainer.failure_guard import MAX_FAILED_STEPS, FailureGuard

FINE = {"failed": 1, "samples": 4, "failure": "timeout", "skipped": 0.0, "broken": None}
SILENT = FINE | {"failed": 4}
BROKEN = FINE | {"skipped": 1.0, "broken": "the update's policy_loss is nan"}


@pytest.mark.parametrize(
    ("setback", "said"),
    [
        (SILENT, "every critique failed in 3 steps in a row, last: timeout"),
        (BROKEN, "policy_loss is nan, and so in 3 steps in a row; the last good checkpoint is kept in run/last"),
    ],
)
def test_only_setbacks_in_a_row_count(setback: dict[str, object], said: str) -> None:
    failure_guard = FailureGuard(Path("run/last"))
    for metrics in [*[setback] * (MAX_FAILED_STEPS - 1), FINE, *[setback] * (MAX_FAILED_STEPS - 1)]:
        failure_guard.observe(metrics)
    with pytest.raises(UserError, match=said):
        failure_guard.observe(setback)
