"""Things of a kind that a comment names."""

from __future__ import annotations

import pytest

from text2grad.align.answer.document import Document
from text2grad.align.answer.kinds import _VALUES, _values_by_kind, _whole_words, find_kinds

TRIP = "We leave on 3 May at 9 am. Tickets cost $40. The hotel costs 120 euros per night. Sorry for the delay, Ann."
SOON = "The pool closes next year. The council said so."
PAINTER = "It was painted in May in Delft by Jan Steen, the Dutch master."
FLOOD = "The flood killed thirty people and destroyed 200 houses."
ROAST = "Heat the oven to 90 °C. Use 5 tablespoons salt and 200 g flour. Roast it for 80 minutes."


def found(comment: str, answer: str) -> list[str]:
    return [answer[slice(*p)] for each in find_kinds(comment, 0, len(comment), Document(answer)) for p in each.places]


@pytest.mark.parametrize(
    ("comment", "answer", "expected"),
    [
        ("The date is wrong.", TRIP, ["3 May"]),
        ("The date is wrong.", SOON, ["next year"]),
        ("The year is wrong.", SOON, ["next year"]),
        ("The price is wrong.", SOON, []),
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
        ("Wrong town.", PAINTER, ["Delft"]),
        ("The country is wrong.", TRIP, []),
        ("The nationality is made up.", PAINTER, ["Dutch"]),
        ("The painter is wrong.", PAINTER, ["Jan Steen"]),
        ("Not the right currency.", TRIP, ["euros"]),
        ("The death toll is too high.", FLOOD, ["thirty people"]),
        ("He was Belgian.", PAINTER, ["Dutch"]),
        ("The material is not a lie.", ROAST, []),  # no litre in "material"
    ],
)
def test_what_a_comment_names(comment: str, answer: str, expected: list[str]) -> None:
    assert found(comment, answer) == expected


@pytest.mark.parametrize(
    "value",
    [
        "Monday", "3 May", "May", "1998", "9:30", "noon", "$5", "three million dollars", "40 %", "gas mark 4", "5g",
        "½l", "a cup", "half a pound", "10 to 12 kg", "twenty evening", "five-mile", "12km/h", "an hour", "overnight",
    ],
)  # fmt: skip
def test_a_value_is_found_by_the_pattern_of_each_kind(value: str) -> None:
    """No pattern is left out of a text that it matches."""
    text = f"It says {value} here."
    matching = [pattern for pattern, _ in _VALUES if pattern.search(value)]
    expected = [pattern for pattern in matching if list(_whole_words(pattern, text))]
    assert [pattern for pattern, _ in _values_by_kind(text)] == expected
