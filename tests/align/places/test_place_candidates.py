"""Tests of the places that a clause may mean."""

import pytest

from text2grad.align.answer.document import Document
from text2grad.align.answer.proposals import Proposal
from text2grad.align.places.place_candidates import find_candidates

LETTER = "Dear Ann,\n\nThe train leaves at 9:15, so be early. We meet on Friday.\n\nBest wishes,\nTom"
CODE = "def half(x):\n    # divide\n    if x > 0:\n        return x // 2\n    return 0\n"


def _texts(text: str, clause: str = "Hm.", proposals: tuple[Proposal, ...] = ()) -> dict[str, str]:
    found = find_candidates(Document(text), "", clause, proposals)
    return {text[slice(*candidate.places[0])]: candidate.level for candidate in found}


@pytest.mark.parametrize(
    ("words", "level"),
    [
        ("We meet on Friday.", "sentence"),
        ("Dear Ann,", "greeting"),
        ("so be early", "piece"),
        ("9:15", "value"),
        ("Friday", "value"),
        (LETTER, "whole"),
    ],
)
def test_prose_has_its_parts(words: str, level: str) -> None:
    assert _texts(LETTER)[words] == level


@pytest.mark.parametrize(
    ("words", "level"),
    [
        ("if x > 0", "statement"),
        ("if x > 0:\n        return x // 2", "block"),
        ("x > 0", "expression"),
        ("# divide", "note"),
    ],
)
def test_program_has_its_statements_and_expressions(words: str, level: str) -> None:
    assert _texts(CODE)[words] == level


def test_words_that_the_clause_has_are_a_candidate() -> None:
    assert "train leaves" not in _texts(LETTER)
    assert _texts(LETTER, "When the trains leave is wrong.")["train leaves"] == "words"


def test_proposal_is_a_candidate_and_no_place_is_there_twice() -> None:
    start = LETTER.index("We meet")
    proposed = (
        Proposal("name", (0, 1), ((start, start + 2),), 0.5),
        Proposal("part", (0, 1), ((0, len(LETTER)),), 0.5),
    )
    found = find_candidates(Document(LETTER), "", "Hm.", proposed)
    assert [c.level for c in found if c.places == ((start, start + 2),)] == ["proposed"]
    assert len({candidate.places for candidate in found}) == len(found)
