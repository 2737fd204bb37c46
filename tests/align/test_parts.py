"""The parts of an answer that a comment names."""

from __future__ import annotations

import pytest

from text2grad.align.document import Document
from text2grad.align.parts import find_parts

LETTER = (
    "Subject: Meeting\n\nHey Dr. Osei,\n\nI am writing to move our meeting. I was lazy.\n\nPlease answer soon."
    "\n\nKind regards,\nTom"
)
RECIPE = (
    "Pancakes\n\nIngredients:\n- 200 g flour\n- 2 eggs\n- milk\n\nMethod:\n1. Whisk it.\n2. Let it rest.\n3. Fry it."
)
PROSE = "Dr. Smith met e.g. Mr. Lee at 3.5 km. Then it rained! Was it cold? It was."


def found(comment: str, answer: str) -> list[str]:
    return [answer[slice(*p)] for each in find_parts(comment, 0, len(comment), Document(answer)) for p in each.places]


@pytest.mark.parametrize(
    ("comment", "answer", "expected"),
    [
        ("The last sentence is bad.", PROSE, ["It was."]),
        ("The second sentence is bad.", PROSE, ["Then it rained!"]),
        ("The first two sentences are fine.", PROSE, ["Dr. Smith met e.g. Mr. Lee at 3.5 km.", "Then it rained!"]),
        ("The second to last sentence is odd.", PROSE, ["Was it cold?"]),
        ("The question is odd.", PROSE, ["Was it cold?"]),
        ("The ending is weak.", PROSE, ["It was."]),
        ("The middle step is vague.", RECIPE, ["Let it rest."]),
        ("The middle sentence is odd.", PROSE, []),  # of four
        ("The opening line is good.", PROSE, ["Dr. Smith met e.g. Mr. Lee at 3.5 km."]),
        ("The tenth sentence is bad.", PROSE, []),
        ("In the end, I like it.", PROSE, []),
        ("The subject line is vague.", LETTER, ["Meeting"]),
        ("The greeting is too casual.", LETTER, ["Hey Dr. Osei,"]),
        ("Nice sign-off.", LETTER, ["Kind regards,\nTom"]),
        ("The second paragraph is curt.", LETTER, ["Please answer soon."]),
        ("The title is boring.", RECIPE, ["Pancakes"]),
        ("The second ingredient is wrong.", RECIPE, ["2 eggs"]),
        ("The third bullet is vague.", RECIPE, ["milk"]),
        ("Step 3 is wrong.", RECIPE, ["Fry it."]),
        ("steps 1 and 2 are fine", RECIPE, ["Whisk it.", "Let it rest."]),
        ("The last step is wrong.", RECIPE, ["Fry it."]),
    ],
)
def test_what_a_comment_names(comment: str, answer: str, expected: list[str]) -> None:
    assert found(comment, answer) == expected


@pytest.mark.parametrize("answer", ["", " \n ", "x", "- ", "1.", "```\n", "Subject:\n", "Dear\n\nYours,"])
def test_answers_without_parts(answer: str) -> None:
    assert all(
        found(comment, answer) is not None for comment in ("the last sentence", "step 1", "the title", "the list")
    )
