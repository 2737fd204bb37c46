"""Values that a clause takes from the source, and where the answer has others in their place."""

from __future__ import annotations

import pytest

from text2grad.align.answer.document import Document
from text2grad.align.corrections.source_values import find_source_value
from text2grad.align.reading import read_comment

SOURCE = (
    "Summarise: The chain Torvik opens 12 shops in Norway in 2027 and hires 350 people. Its director, Anna Berg, said "
    "on Monday that profit fell by 6 percent to 45 million kroner. The first shop opens in April."
)
ANSWER = (
    "Torvik opens 12 shops in Norway in 2027 and hires 250 people. On Tuesday its director, Anna Beck, said that "
    "profit fell by 16 percent to 45 million kroner. The first shop opens in May."
)


def corrected(comment: str, answer: str = ANSWER, source: str = SOURCE) -> list[tuple[str, str | None]]:
    """Return (words, replacement) of the spans with one."""
    spans = read_comment(comment, answer, source).spans
    return [(answer[s.start : s.end], s.replacement) for s in spans if s.replacement is not None]


@pytest.mark.parametrize(
    ("comment", "words", "replacement"),
    [
        ("The head count should read 350.", "250", "350"),
        ("350, digits wrong", "250", "350"),
        ("They take on 350.", "250", "350"),
        ("6, please, or the shareholders will panic", "16", "6"),
        ("She spoke on Monday.", "Tuesday", "Monday"),
        ("April, as far as I can read", "May", "April"),
        ("The director is misspelt (Anna Berg).", "Anna Beck", "Anna Berg"),
    ],
)
def test_a_value_of_the_source_takes_the_place_of_the_one_in_its_context(
    comment: str, words: str, replacement: str
) -> None:
    assert corrected(comment) == [(words, replacement)]


@pytest.mark.parametrize(
    "comment",
    [
        "The 12 shops are right.",  # the answer has it
        "Was it 350 people?",
        "Maybe it was 350.",
        "Should have 9 examples.",  # neither has it
        "350 people and 6 percent",  # which of two?
        "A very clear answer.",
    ],
)
def test_what_is_no_single_value_of_the_source_corrects_nothing(comment: str) -> None:
    assert find_source_value(comment, (0, len(comment)), Document(ANSWER, SOURCE), SOURCE) is None


def test_a_value_that_the_source_has_in_the_same_place_is_right() -> None:
    source = "Summarise: The hall has 40 seats and 9 lamps. Tickets cost 7 euros."
    answer = "Tickets cost 7 euros. There are 40 seats."
    comment = "And 9 lamps."
    assert find_source_value(comment, (0, len(comment)), Document(answer, source), source) is None


def test_a_value_in_other_spelling_is_blamed_but_not_replaced() -> None:
    source = "Summarise: After nine days the wash is repeated, as the eggs hatch."
    answer = "The wash is repeated after 19 days, as the eggs hatch. It does not hurt."
    reading = read_comment("nine days, otherwise they hatch", answer, source)
    assert [(answer[s.start : s.end], s.label, s.replacement) for s in reading.spans] == [("19", "poor", None)]


def test_sure_praise_stays_praise() -> None:
    reading = read_comment("I love how clear it is, in 350 words and not more!", ANSWER, SOURCE)
    assert {span.label for span in reading.spans} == {"good"}


def test_without_a_source_there_is_no_value_of_it() -> None:
    comment = "The head count should read 350."
    assert find_source_value(comment, (0, len(comment)), Document(ANSWER), "") is None


def test_a_name_belongs_in_the_place_of_another_only_among_several_like_words() -> None:
    source = "Lena Brandt and Rosa Mewes won bronze at the second round of the series in Lisbon on Sunday."
    answer = "Lena Brandt and Ida Falk won bronze at the second round in Porto."
    document = Document(answer, source)
    comment = "The event was in Lisbon."
    assert find_source_value(comment, (0, len(comment)), document, source) is None
    comment = "That was Rosa Mewes."
    found = find_source_value(comment, (0, len(comment)), document, source)
    assert found is not None
    assert answer[slice(*found.place)] == "Ida Falk"


def test_a_number_in_a_compound_is_replaced_alone() -> None:
    source = "Summarise: The mill of Ost was sold. Its tower, 63 metres high, is listed. Nobody lives there."
    answer = "The 36-metre high tower of the mill was sold."
    (span,) = read_comment("The tower is 63 metres high.", answer, source).spans
    assert (answer[span.start : span.end], span.replacement) == ("36", "63")
