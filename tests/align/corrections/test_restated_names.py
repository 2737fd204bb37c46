"""Tests of clauses that give another name or place than the answer."""

from __future__ import annotations

import pytest

from text2grad.align.answer.document import Document
from text2grad.align.corrections.restated_names import find_restated_name, find_restated_place
from text2grad.align.reading import read_comment

CAFE = (
    "The café in Aarhus was founded in May 1998 by Ulla Berg. Manager Finn Lund says that Route 12 brings most guests. "
    "They serve what is called Dresden bread. The first branch opened near Kolding."
)


def named(comment: str) -> tuple[str, str] | None:
    value = find_restated_name(comment, (0, len(comment)), Document(CAFE))
    return (CAFE[slice(*value.place)], comment[slice(*value.phrase)]) if value else None


def placed(comment: str) -> tuple[str, str] | None:
    value = find_restated_place(comment, (0, len(comment)), Document(CAFE))
    return (CAFE[slice(*value.place)], comment[slice(*value.phrase)]) if value else None


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("The manager is Otto Brandt.", ("Finn Lund", "Otto Brandt")),
        ("The manager is called Otto.", ("Finn", "Otto")),
        ("The manager's first name is Otto.", ("Finn", "Otto")),
        ("The manager's last name is Brandt.", ("Lund", "Brandt")),
        ("It's Leipzig bread.", ("Dresden", "Leipzig")),
        ("It was Route 21.", ("12", "21")),
    ],
)
def test_the_name_in_the_same_place_is_corrected(comment: str, expected: tuple[str, str]) -> None:
    assert named(comment) == expected


@pytest.mark.parametrize(
    "comment",
    [
        "The manager is nice.",
        "It's Route 12.",
        "It's good bread.",
        "In 12 cases.",
        "Is it Leipzig bread?",
        "Maybe Route 21.",
    ],
)
def test_other_clauses_give_no_name(comment: str) -> None:
    assert named(comment) is None


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("The first branch was near Horsens.", ("Kolding", "Horsens")),
        ("The café is in Odense.", ("Aarhus", "Odense")),
        ("It was in Odense.", ("Aarhus", "Odense")),
    ],
)
def test_a_place_after_the_same_preposition_is_corrected(comment: str, expected: tuple[str, str]) -> None:
    assert placed(comment) == expected


@pytest.mark.parametrize(
    "comment",
    [
        "I read this in Odense.",
        "It is not in Odense.",
        "Is it in Odense?",
        "It was founded in March.",
        "Your tables in Excel look great with bright colours.",
        "The café is at Odense.",  # no other place after "at"
    ],
)
def test_other_clauses_give_no_place(comment: str) -> None:
    assert placed(comment) is None


def test_a_year_and_a_place_are_both_corrected() -> None:
    answer = "The novel is long. It was first printed in 1922 in Dublin. Critics loved it."
    reading = read_comment("It came out in 1921, in Galway.", answer)
    assert [(answer[s.start : s.end], s.replacement) for s in reading.spans] == [("1922", "1921"), ("Dublin", "Galway")]


def test_of_a_name_only_what_the_source_has_otherwise_is_replaced() -> None:
    source = "The town of Alder elected a new mayor. Mayor Nora Field promised a second bridge over the river."
    answer = "Alder has a new mayor. Mayor Jane Field promised a second bridge."
    reading = read_comment("The mayor is called Nora.", answer, source)
    assert [(answer[s.start : s.end], s.replacement) for s in reading.spans] == [("Jane", "Nora")]
