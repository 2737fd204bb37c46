"""Tests of the ranking of places, with the shipped weights."""

import pytest

from text2grad.align.answer.document import Document
from text2grad.align.places.places import rank_places

RECIPE = (
    "Pancakes\n\n1. Mix 200 g flour with two eggs.\n2. Add the milk slowly and stir.\n"
    "3. Fry in hot butter for an hour.\n\n"
    "Enjoy, and remember that cooking is the poetry of the kitchen!"
)


def _best(comment: str, text: str = RECIPE, stance: str = "poor") -> tuple[str, str] | None:
    found = rank_places(comment, (0, len(comment)), stance, Document(text), "", [])
    assert found is None or 0 < found.confidence <= 1
    return found and (found.source, text[slice(*found.places[0])])


@pytest.mark.parametrize(
    ("comment", "words"),
    [
        ("Adding the milk slowly is a good tip.", "Add the milk slowly"),
        ("An hour in hot butter would burn them.", "hour"),
        ("The poetry line at the end is silly.", "poetry"),
    ],
)
def test_clause_finds_what_it_is_about(comment: str, words: str) -> None:
    found = _best(comment)
    assert found is not None
    assert words in found[1]
    assert len(found[1]) < len(RECIPE) / 2


def test_general_praise_is_about_the_whole() -> None:
    assert _best("Very clear and easy to follow!", stance="good") == ("whole", RECIPE)


def test_named_part_keeps_its_source() -> None:
    assert _best("The title is boring.") == ("part", "Pancakes")


def test_place_in_a_program_is_code() -> None:
    code = "def mean(values):\n    total = sum(values)\n    return total / len(values)\n"
    found = _best("Divides by zero for an empty list.", code)
    assert found is not None
    assert "/ len(values)" in found[1]
