from __future__ import annotations

import pytest

from text2grad.align.omissions import is_present

ANSWER = "Repairs would have cost three million pounds. Let the chicken rest for ten minutes."


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        ("the price", False),
        ("the cost of the repairs", True),
        ("letting it rest", True),
        ("who paid for the repairs", False),
        ("something about opening hours", False),
        ("", False),
        ("it", False),
    ],
)
def test_what_is_there_is_not_missing(missing: str, expected: bool) -> None:
    assert is_present(missing, ANSWER) is expected
