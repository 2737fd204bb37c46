"""The parts of an answer that a comment names."""

from __future__ import annotations

import pytest

from text2grad.align.answer.document import Document
from text2grad.align.answer.parts import find_counted, find_described_edge, find_parts, find_rest, find_several
from text2grad.align.reading import read_comment

LETTER = (
    "Subject: Meeting\n\nHey Dr. Osei,\n\nI am writing to move our meeting. I was lazy.\n\nPlease answer soon."
    "\n\nKind regards,\nTom"
)
RECIPE = (
    "Pancakes\n\nIngredients:\n- 200 g flour\n- 2 eggs\n- milk\n\nMethod:\n1. Whisk it.\n2. Let it rest.\n3. Fry it."
)
PLAN = "A plan:\n\nWeek 1: walk\nWeek 2: run\nWeek 3: fly"
LIST = "Presents:\n\n- a novel\n- a scarf\n- a cactus"
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
        ("steps 1 and 3 are fine", RECIPE, ["Whisk it.", "Fry it."]),
        ("steps 1, 2 and 3 are fine", RECIPE, ["Whisk it.", "Let it rest.", "Fry it."]),
        ("steps 2-3 are fine", RECIPE, ["Let it rest.", "Fry it."]),
        ("The third idea is bad.", LIST, ["a cactus"]),
        ("Suggestions 1 and 2 are fine.", LIST, ["a novel", "a scarf"]),
        ("The third idea is bad.", PROSE, []),
        ("The start date is wrong.", PROSE, []),
        ("The end point is wrong.", PROSE, []),
        ("The second one is bad.", LIST, ["a scarf"]),
        ("The second one is bad.", PROSE, []),
        ("Week 2 is bad.", PLAN, ["Week 2: run"]),
        ("Weeks 1 and 3 are bad.", PLAN, ["Week 1: walk", "Week 3: fly"]),
        ("Week 7 is missing.", PLAN, []),
    ],
)
def test_what_a_comment_names(comment: str, answer: str, expected: list[str]) -> None:
    assert found(comment, answer) == expected


@pytest.mark.parametrize("answer", ["", " \n ", "x", "- ", "1.", "```\n", "Subject:\n", "Dear\n\nYours,"])
def test_answers_without_parts(answer: str) -> None:
    assert all(
        found(comment, answer) is not None for comment in ("the last sentence", "step 1", "the title", "the list")
    )


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("I enjoyed how it ends.", "It was."),
        ("The way the story opens is dull.", "Dr. Smith met e.g. Mr. Lee at 3.5 km."),
        ("It starts slowly.", "Dr. Smith met e.g. Mr. Lee at 3.5 km."),
        ("Sadly, it ends far too suddenly.", "It was."),
        ("Too flat a conclusion.", "It was."),
        ("The rain starts too suddenly.", None),
        ("I like how it ends in Rome.", None),
        ("Too flat a story.", None),
    ],
)
def test_how_it_begins_and_ends(comment: str, expected: str | None) -> None:
    proposal = find_described_edge(comment, 0, len(comment), Document(PROSE))
    assert (proposal and PROSE[slice(*proposal.places[0])]) == expected


def test_where_something_begins_is_told_loosely() -> None:
    comment = "It ends with a guess."
    assert find_described_edge(comment, 0, len(comment), Document(PROSE)) is None
    assert find_described_edge(comment, 0, len(comment), Document(PROSE), is_loose=True) is not None


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("Everything after the second sentence is good.", ["Was it cold?", "It was."]),
        ("I like everything before the third sentence", ["Dr. Smith met e.g. Mr. Lee at 3.5 km.", "Then it rained!"]),
        ("Everything after the last sentence is good.", []),
        ("Everything is good.", []),
    ],
)
def test_what_comes_before_or_after_a_part(comment: str, expected: list[str]) -> None:
    proposal = find_rest(comment, 0, len(comment), Document(PROSE))
    assert [PROSE[slice(*place)] for place in (proposal.places if proposal else ())] == expected


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("Steps 1 and 3 are vague.", ["Whisk it.", "Fry it."]),
        ("Number 3 is vague.", ["milk"]),
        ("Step 3 is vague.", None),  # which of its words, the ranker knows better
        ("Steps 1 and 3 are vague, since nobody knows how hot the pan is.", None),
    ],
)
def test_several_numbered_parts(comment: str, expected: list[str] | None) -> None:
    proposal = find_several(comment, 0, len(comment), Document(RECIPE))
    assert (proposal and [RECIPE[slice(*place)] for place in proposal.places]) == expected


HIKE = "Take bus 12 at 9 a.m. from the square. Lunch is 8 euros. The third bridge is closed. Wear boots."
FERRY = "The ferry leaves at 8. A ticket is 5 euros. Dogs travel free. The trip takes an hour."


def blamed(comment: str, answer: str) -> list[str]:
    reading = read_comment(comment, answer)
    return [answer[span.start : span.end] for span in reading.spans if span.label == "poor"]


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("The opening sentence is nice. The second is wrong.", ["A ticket is 5 euros."]),
        ("The fourth isn't true.", ["The trip takes an hour."]),
        ("I like the first sentence, but the third is dull.", ["Dogs travel free."]),
        ("The second and the last are wrong.", ["A ticket is 5 euros.", "The trip takes an hour."]),
        ("The third one is confusing.", ["Dogs travel free."]),
        ("Everything but the second sentence is right.", ["A ticket is 5 euros."]),
        ("Everything except the last two sentences is wrong.", ["The ferry leaves at 8.", "A ticket is 5 euros."]),
    ],
)
def test_an_ordinal_alone_counts_sentences(comment: str, expected: list[str]) -> None:
    assert blamed(comment, FERRY) == expected


def test_an_ordinal_alone_counts_what_was_named_last() -> None:
    answer = "Pack these:\n- a tent\n- a stove\n- a rope\n\nThe bus leaves at ten. It is red. It is new."
    assert blamed("The first bullet is fine. The second is wrong.", answer) == ["a stove"]
    assert blamed("The first sentence is fine. The third is wrong.", answer.split("\n\n")[1]) == ["It is new."]


@pytest.mark.parametrize("comment", ["The third is wrong.", "The ninth is wrong."])
def test_an_ordinal_of_the_answer_or_beyond_it_is_not_counted(comment: str) -> None:
    document = Document(HIKE)
    assert find_counted(comment, 0, len(comment), document) is None


@pytest.mark.parametrize("comment", ["The second prize is great.", "In the third, nothing is said.", "At the second."])
def test_an_ordinal_of_a_noun_is_not_counted(comment: str) -> None:
    assert find_counted(comment, 0, len(comment), Document(FERRY)) is None


@pytest.mark.parametrize(
    ("answer", "sentences"),
    [
        ("The shop shuts at 7 p.m. You can park behind it.", 2),
        ("Doors open at 9 a.m. The film starts later.", 2),
        ("We met at 9 a.m. on Sunday and left at 5 p.m. Eastern time.", 1),
        ("It ends at 6 p.m. May 4 is a holiday.", 1),
        ("The U.S. The army left.", 1),
    ],
)
def test_a_sentence_may_end_with_half_a_day(answer: str, sentences: int) -> None:
    assert len(Document(answer).sentences) == sentences
