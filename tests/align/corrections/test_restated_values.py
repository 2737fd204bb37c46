"""Tests of clauses that give another value than the answer."""

from __future__ import annotations

import pytest

from text2grad.align.answer.document import Document
from text2grad.align.corrections.restated_values import find_restated_value
from text2grad.align.reading import read_comment

TRIP = "We leave on Tuesday 3 May at 9 am. Tickets cost $40. The hotel costs 120 euros per night. It takes 8 hours."


def found(comment: str, answer: str = TRIP) -> tuple[str, str] | None:
    value = find_restated_value(comment, (0, len(comment)), Document(answer))
    return (answer[slice(*value.place)], comment[slice(*value.phrase)]) if value else None


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("Tickets cost $45.", ("$40", "$45")),
        ("It should be 10 am.", ("9 am", "10 am")),
        ("The hotel is 140 euros.", ("120 euros", "140 euros")),
        ("4 May.", ("Tuesday 3 May", "4 May")),
        ("We leave on a Wednesday.", ("Tuesday", "Wednesday")),
        ("The hotel's price is wrong: 99 euros!", ("120 euros", "99 euros")),
    ],
)
def test_another_value_corrects_the_one_in_its_place(comment: str, expected: tuple[str, str]) -> None:
    assert found(comment) == expected


@pytest.mark.parametrize(
    "comment",
    [
        "Is it 130 euros?",  # asks
        "Maybe 130 euros.",  # hedges
        "I'm not sure, 10 am perhaps.",
        "It takes eight hours.",  # the same
        "8-hr journey",
        "Tickets cost $40.",
        "I read it in 2 minutes and loved every bit of the witty prose.",  # says something else
        "We leave.",
        "The hotel is off by 30 euros.",  # a difference
        "That is 2 hours too long.",
        "The tickets are $5 more.",
        "Tickets cost $45 and 50 euros.",  # two values for one
    ],
)
def test_what_asks_agrees_or_says_more_corrects_nothing(comment: str) -> None:
    assert found(comment) is None


def test_programs_have_no_values_of_this_kind() -> None:
    assert found("It should be 10 minutes.", "def wait():\n    sleep(5 * 60)  # 5 minutes") is None


def test_a_statement_that_contradicts_is_blame_with_a_correction() -> None:
    (span,) = read_comment("The fair raised $3,200.", "We met twice. The fair raised $2,300. Anna took notes.").spans
    assert (span.start, span.end, span.label, span.replacement) == (30, 36, "poor", "$3,200")
    reading = read_comment("Work starts in June.", "The road is narrow. Work starts in May. Cars must turn left.")
    assert [(span.label, span.replacement) for span in reading.spans] == [("poor", "June")]
    assert reading.refused == []


def test_a_quotation_says_itself_what_is_meant() -> None:
    (span,) = read_comment('"Tickets" is better than $45.', TRIP).spans
    assert TRIP[span.start : span.end] == "Tickets"
    assert span.replacement is None


def test_a_number_word_is_written_as_in_its_place() -> None:
    source = "Summarise: The storm broke nine windows and a door of the school. Nobody was hurt."
    answer = "The storm broke four windows. Nobody was hurt."
    (span,) = read_comment("Nine windows were broken.", answer, source).spans
    assert (answer[span.start : span.end], span.replacement) == ("four", "nine")


def test_a_value_of_what_another_sentence_tells_replaces_nothing() -> None:
    answer = "We deliver within three days. Repairs take ten minutes."
    assert not any(span.replacement for span in read_comment("Delivery takes a month.", answer).spans)
