"""Suspicion, by hand."""

from __future__ import annotations

import math

import pytest

from text2grad.align.answer.program import Program, find_statements
from text2grad.critics.code.spectrum import ochiai, suspicions


def test_ochiai() -> None:
    failing, passing = [{1, 2}, {1, 3}], [{1}, {1, 3}]
    assert ochiai(failing, passing, 1) == pytest.approx(2 / math.sqrt(2 * 4))
    assert ochiai(failing, passing, 2) == pytest.approx(1 / math.sqrt(2 * 1))
    assert ochiai(failing, passing, 3) == pytest.approx(1 / math.sqrt(2 * 2))
    assert ochiai(failing, passing, 4) == 0


def test_what_only_failing_tests_run_comes_first_whatever_its_size() -> None:
    found = suspicions([{1, 3}], [{1, 2}], find_statements(Program("a = b + c + d\nc = d\ne = f\n", 0)))
    assert list(found) == [3, 1]  # line 2 ran in no failing test
    assert found[3] > 0.9
    assert found[1] == pytest.approx(1 / math.sqrt(2))  # the heaviest statement: Ochiai without a deduction


def test_equal_spectra_are_ordered_by_size_and_position() -> None:
    found = suspicions([{1, 2, 3}], [], find_statements(Program("a = 0\nb = a + 1\nc = b\n", 0)))
    assert list(found) == [2, 3, 1]  # 6 * 1.5, 3 * 2, 3 * 1
    assert found == {2: 1.0, 3: pytest.approx(0.9 + 0.1 * 6 / 9), 1: pytest.approx(0.9 + 0.1 * 3 / 9)}
