"""Tests of the network that reads stances."""

from __future__ import annotations

import numpy as np
import pytest

from text2grad.align.stance_net import MAX_WORDS, describe_words, score_clause
from text2grad.text.vectors import DIMENSIONS


@pytest.mark.parametrize("clause", ["It is wrong.", "", "\ue000", "?!", "word " * 500])
def test_every_clause_has_four_finite_scores(clause: str) -> None:
    scores = score_clause(clause, ["share4", "unknown"])
    assert scores.shape == (4,)
    assert np.isfinite(scores).all()


def test_words_are_vectors_and_roles() -> None:
    vectors, roles = describe_words("The zzxq is wrong")
    assert vectors.shape == (4, DIMENSIONS)
    assert not vectors[1].any(), "an unknown word has no vector"
    assert roles[1] == 0
    assert roles[3] > 0
    assert len(describe_words("word " * 500)[1]) == MAX_WORDS


def test_praise_and_blame_are_told_apart() -> None:
    good, poor = score_clause("The explanation is clear and helpful."), score_clause("The explanation is wrong.")
    assert good[0] > good[1]
    assert poor[1] > poor[0]


def test_the_context_counts() -> None:
    assert not np.allclose(score_clause("Thursday.", ["n1", "share0"]), score_clause("Thursday.", ["a1", "share4"]))
