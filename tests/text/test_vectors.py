"""Word vectors: related words are closer than unrelated ones."""

from __future__ import annotations

import pytest

from text2grad.text.vectors import similarity, word_vector


@pytest.mark.parametrize(
    ("word", "near", "far"),
    [("brilliant", "wonderful", "kettle"), ("price", "cost", "monday"), ("crashes", "crash", "lovely")],
)
def test_related_words_are_closer(word: str, near: str, far: str) -> None:
    assert similarity(word, near) > 0.3 > similarity(word, far)


def test_a_vector_has_length_one_and_an_unknown_word_has_none() -> None:
    vector = word_vector("Wrong")
    assert vector is not None
    assert float(vector @ vector) == pytest.approx(1.0, abs=1e-5)
    assert word_vector("qxzzy") is None
    assert similarity("qxzzy", "qxzzy") == 1.0
    assert similarity("qxzzy", "wrong") == 0.0
