from __future__ import annotations

import pytest

from text2grad.align.clauses.missing import find_missing


def named(clause: str) -> str | None:
    found = find_missing(clause, 0, len(clause))
    return clause[slice(*found)] if found else None


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("It never gets round to the price.", "the price"),
        ("The price goes unmentioned.", "The price"),
        ("Nowhere is the price mentioned.", "the price"),
        ("Where are the eggs?", "the eggs"),
        ("I'd like to know who won.", "who won"),
        ("It lacks a closing line.", "a closing line"),
        ("There is no check for negative numbers.", "negative numbers"),
        ("It forgot the date, the place and the time.", "the date, the place and the time"),
        ("A word about the reason for the strike would be nice.", "the reason for the strike"),
        ("no address", "address"),
        ("It is missing.", None),
        ("", None),
    ],
)
def test_what_is_missing_is_what_remains_without_the_frame(clause: str, expected: str | None) -> None:
    assert named(clause) == expected


def test_the_range_is_that_of_the_comment() -> None:
    comment = "Good. It forgot the price."
    assert find_missing(comment, 6, len(comment)) == (16, 25)
