"""Whether neighbouring parts of a comment say one thing."""

from __future__ import annotations

import pytest

from text2grad.align.clauses.clause_join import extract_join_features, predict_join
from text2grad.align.clauses.clause_split import Piece
from text2grad.align.clauses.clauses import read_clauses
from text2grad.align.stance.stance_model import StanceProbabilities

GOOD = StanceProbabilities(0.9, 0.05, 0.05, 0.0)
POOR = StanceProbabilities(0.05, 0.9, 0.05, 0.0)
UNSURE = StanceProbabilities(0.3, 0.3, 0.4, 0.0)
COMMENT = "Who says so? The article does not."
LEFT, RIGHT = Piece(0, 12), Piece(13, len(COMMENT))


def test_praise_and_blame_are_never_one() -> None:
    assert predict_join(COMMENT, LEFT, RIGHT, (GOOD, POOR)) == 0.0
    assert predict_join(COMMENT, LEFT, RIGHT, (POOR, GOOD)) == 0.0


def test_features_name_the_mark_the_words_and_the_stances() -> None:
    features = extract_join_features(COMMENT, LEFT, RIGHT._replace(before="and"), (POOR, UNSURE))
    assert {"mark:?", "word:and", "end:.", "stances:p+u-", "starts:the", "starts:the article"} <= set(features)


@pytest.mark.parametrize(
    ("comment", "stances"),
    [
        ("Good intro, bad ending.", ["good", "poor"]),
        ("The dates are wrong. The names are correct.", ["poor", "good"]),
    ],
)
def test_praise_and_blame_stay_apart(comment: str, stances: list[str]) -> None:
    assert [clause.stance for clause in read_clauses(comment)] == stances


@pytest.mark.parametrize(
    "comment", ["The year is off. It was 1998, not 1989.", "Which is it? Ten minutes or twenty?", COMMENT]
)
def test_parts_that_say_one_thing_are_one_clause(comment: str) -> None:
    (clause,) = read_clauses(comment)
    assert clause.stance == "poor"
    assert comment[clause.start : clause.end] == comment
