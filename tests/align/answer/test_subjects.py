from __future__ import annotations

import pytest

from text2grad.align.answer.document import Document
from text2grad.align.answer.subjects import find_subjects

ANSWER = "Rub the chicken with oil and lemon. Ride tram 28 at noon. The tram is old."


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("The lemon is a nice touch.", ["lemon"]),
        ("The noon tip is great.", ["Ride tram 28 at noon."]),
        ("The part about the chicken is wrong.", ["Rub the chicken with oil and lemon."]),
        ("The umbrella is wrong.", []),
        ("Wrong.", []),
    ],
)
def test_what_a_clause_is_about(comment: str, expected: list[str]) -> None:
    proposals = find_subjects(comment, 0, len(comment), Document(ANSWER))
    assert [ANSWER[slice(*place)] for proposal in proposals for place in proposal.places] == expected
