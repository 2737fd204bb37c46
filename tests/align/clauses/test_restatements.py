"""Tests of clauses that only say again what the answer says."""

from __future__ import annotations

import pytest

from text2grad.align.answer.document import Document
from text2grad.align.clauses.clauses import Clause
from text2grad.align.clauses.restatements import doubt_restatements

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
