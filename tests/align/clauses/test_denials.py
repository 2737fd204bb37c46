"""What a clause denies, and what it contrasts, in the answer."""

from __future__ import annotations

import pytest

from text2grad.align.answer.document import Document
from text2grad.align.clauses.denials import find_contrasted, find_denied

ANSWER = "Delivery is free. Customs fees are included in the price. The shop is not open on Sunday."


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("delivery isn't free", "Delivery is free"),
        ("But the customs fees are NOT included.", "Customs fees are included"),
        ("The shop is not open on Sunday.", None),  # the answer says so too
        ("Delivery isn't fast", None),
        ("It is not free", None),
        ("Delivery is free", None),
    ],
)
def test_what_is_denied(clause: str, expected: str | None) -> None:
    place = find_denied(clause, (0, len(clause)), Document(ANSWER))
    assert (ANSWER[slice(*place)] if place else None) == expected


@pytest.mark.parametrize(
    ("clause", "expected"),
    [("Monday, not Sunday!", ["Sunday"]), ("right, not free", ["free"]), ("nice, not free", []), ("not free", [])],
)
def test_what_is_contrasted(clause: str, expected: list[str]) -> None:
    assert [ANSWER[slice(*place)] for place in find_contrasted(clause, (0, len(clause)), Document(ANSWER))] == expected
