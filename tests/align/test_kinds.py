"""Things of a kind that a comment names."""

from __future__ import annotations

import pytest

from text2grad.align.document import Document
from text2grad.align.kinds import find_kinds

TRIP = "We leave on 3 May at 9 am. Tickets cost $40. The hotel costs 120 euros per night. Sorry for the delay, Ann."
ROAST = "Heat the oven to 90 °C. Use 5 tablespoons salt and 200 g flour. Roast it for 80 minutes."


def found(comment: str, answer: str) -> list[str]:
    return [answer[slice(*p)] for each in find_kinds(comment, 0, len(comment), Document(answer)) for p in each.places]


@pytest.mark.parametrize(
    ("comment", "answer", "expected"),
    [
        ("The date is wrong.", TRIP, ["3 May"]),
        ("The time is wrong.", TRIP, ["9 am"]),
        ("The price of the hotel is off.", TRIP, ["120 euros"]),
        ("The apology is nice.", TRIP, ["Sorry for the delay, Ann."]),
        ("It should be 10 am.", TRIP, ["9 am"]),
        ("We leave on 4 May.", TRIP, ["3 May"]),
        ("The oven temperature is too low.", ROAST, ["90 °C"]),
        ("The amount of salt is crazy.", ROAST, ["5 tablespoons"]),
        ("The roasting time is too long.", ROAST, ["80 minutes"]),
        ("The e-mail address is wrong.", ROAST, []),
        ("Every time I read it I laugh.", ROAST, []),
    ],
)
def test_what_a_comment_names(comment: str, answer: str, expected: list[str]) -> None:
    assert found(comment, answer) == expected
