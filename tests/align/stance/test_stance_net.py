"""Tests of the network that reads stances."""

from __future__ import annotations

import numpy as np
import pytest

from text2grad.align.stance.stance_net import MAX_WORDS, describe_words, score_clauses
from text2grad.text.vectors import DIMENSIONS


@pytest.mark.parametrize("clause", ["It is wrong.", "", "\ue000", "?!", "word " * 500])
def test_every_clause_has_four_finite_scores(clause: str) -> None:
    scores = score_clauses([clause], [["share4", "unknown"]])
    assert scores.shape == (1, 4)
    assert np.isfinite(scores).all()


def test_words_are_vectors_and_roles() -> None:
    vectors, roles = describe_words("The zzxq is wrong")
    assert vectors.shape == (4, DIMENSIONS)
    assert not vectors[1].any(), "an unknown word has no vector"
    assert roles[1] == 0
    assert roles[3] > 0
    assert len(describe_words("word " * 500)[1]) == MAX_WORDS


def test_praise_and_blame_are_told_apart() -> None:
    good, poor = score_clauses(["The explanation is clear and helpful.", "The explanation is wrong."], [[], []])
    assert good[0] > good[1]
    assert poor[1] > poor[0]


def test_the_context_counts() -> None:
    new, known = score_clauses(["Thursday."] * 2, [["n1", "share0"], ["a1", "share4"]])
    assert not np.allclose(new, known)


def test_clauses_that_are_read_together_do_not_see_each_other() -> None:
    clauses, contexts = ["Nice.", "The date is wrong, it was in May.", "ok"], [["a1"], [], ["share4"]]
    alone = [score_clauses([clause], [context])[0] for clause, context in zip(clauses, contexts, strict=True)]
    assert np.allclose(score_clauses(clauses, contexts), alone, atol=1e-4)
