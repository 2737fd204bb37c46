from __future__ import annotations

import pytest

from text2grad.align.omissions import asks_to_change, is_present, is_unwanted

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


@pytest.mark.parametrize(
    "comment",
    [
        "The joke does not belong in a warning.",
        "Prices have no place in this letter.",
        "A recipe is no place for politics.",
        "The second paragraph wasn't requested.",
        "The tips were never even asked for.",
    ],
)
def test_what_does_not_belong_there_is_not_missing(comment: str) -> None:
    assert is_unwanted(comment, 0, len(comment))


@pytest.mark.parametrize(
    "comment",
    [
        "The price is missing.",
        "I asked for a price.",
        "There is no place for notes.",
        "It should be fixed to the wall, too.",
    ],
)
def test_what_is_missed_is_wanted(comment: str) -> None:
    assert not is_unwanted(comment, 0, len(comment))
    assert not asks_to_change(comment, 0, len(comment))


@pytest.mark.parametrize("comment", ["The blanks should be trimmed.", "The names have to be shortened."])
def test_what_should_change_is_there(comment: str) -> None:
    assert asks_to_change(comment, 0, len(comment))
