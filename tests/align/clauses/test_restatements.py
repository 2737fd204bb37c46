"""Tests of clauses that only say again what the answer says."""

from __future__ import annotations

import pytest

from text2grad.align.answer.document import Document
from text2grad.align.clauses.clauses import Clause
from text2grad.align.clauses.restatements import doubt_restatements
from text2grad.align.reading import read_comment

ANSWER = "A fifth whale has washed up on the east coast of England."
SOURCE = (
    "Another sperm whale was found dead near Wainfleet in Lincolnshire on Monday. It is the fifth whale to be washed "
    "up on the coast of eastern England since Friday, when 14 people saw the first."
)


def stances(comment: str, *parts: str, prompt: str | None = SOURCE) -> list[str]:
    """Return the stances of parts of a comment that all were read as blame."""
    clauses = [Clause(start := comment.index(part), start + len(part), "poor", 0.6) for part in parts]
    return [clause.stance for clause in doubt_restatements(comment, clauses, Document(ANSWER, prompt or ""), prompt)]


@pytest.mark.parametrize(
    "comment",
    [
        "This fifth whale was in Wainfleet, which is at the east coast of England.",
        "While not explicitly stated, the text leads to the inference that this is the fifth whale.",
    ],
)
def test_what_the_answer_says_is_not_blamed(comment: str) -> None:
    assert stances(comment, comment) == ["unsure"]


@pytest.mark.parametrize(
    "comment",
    [
        "The article says 14.",  # the answer has other words
        "The fifth whale washed up 14 miles off the coast.",  # and another number
        "The fifth whale did not wash up on the coast.",
        "Remove the information about the fifth whale on the coast.",
        "The fifth whale on the coast should be the fourth.",
    ],
)
def test_what_objects_is_blamed(comment: str) -> None:
    assert stances(comment, comment) == ["poor"]


def test_without_a_source_there_is_nothing_to_say_again() -> None:
    comment = "A fifth whale on the east coast of England, sure."
    assert stances(comment, comment, prompt=None) == ["poor"]


def test_details_of_what_is_supported_are_not_blamed() -> None:
    comment = "The summary is consistent with the article: a whale, dead, of five."
    start = comment.index("a whale")
    clauses = [Clause(0, start, "good", 0.9), Clause(start, len(comment), "poor", 0.9)]
    found = doubt_restatements(comment, clauses, Document(ANSWER), None)
    assert [clause.stance for clause in found] == ["good", "unsure"]


TOUR = "The tour takes two hours. A seat costs 30 dollars and includes lunch. We start at ten."
PARTY = "The party starts at seven in the old school."


def blamed(comment: str, answer: str, prompt: str | None = None) -> list[str]:
    reading = read_comment(comment, answer, prompt)
    return [answer[span.start : span.end] for span in reading.spans if span.label == "poor"]


@pytest.mark.parametrize(
    "comment",
    [
        'All of it is true except "30 dollars".',
        "Everything is accurate, apart from the price.",
        "This is correct with the exception of the price.",
        "It is all correct until the price.",
        'The answer is valid. "30 dollars" is strange.',
    ],
)
def test_what_is_excepted_or_said_in_the_next_sentence_is_no_detail_of_support(comment: str) -> None:
    assert blamed(comment, TOUR) == ["30 dollars"]


def test_details_of_support_in_the_next_sentence_are_not_blamed_where_the_answer_retells_a_source() -> None:
    comment = "The summary is accurate. Five dead whales, all on the coast."
    start = comment.index("Five")
    clauses = [Clause(0, start - 1, "good", 0.9), Clause(start, len(comment), "poor", 0.9)]
    found = doubt_restatements(comment, clauses, Document(ANSWER, SOURCE), SOURCE)
    assert [clause.stance for clause in found] == ["good", "unsure"]


@pytest.mark.parametrize(
    ("comment", "words"),
    [
        ('"old school" is an awful choice.', "old school"),
        ('Delete "old".', "old"),
        ('"seven" is weird.', "seven"),
        ("The old school is inconvenient.", "the old school"),
    ],
)
@pytest.mark.parametrize("question", ["When does the party start?", "Where is the party, and when does it start?"])
def test_a_question_is_no_source(comment: str, words: str, question: str) -> None:
    (found,) = blamed(comment, PARTY, question)
    assert words in found.lower()


@pytest.mark.parametrize("part", ['The "fifth whale" on the coast.', "Remove the fifth whale on the coast of England."])
def test_who_quotes_the_answer_or_asks_to_remove_says_nothing_again(part: str) -> None:
    assert stances(part, part) == ["poor"]
