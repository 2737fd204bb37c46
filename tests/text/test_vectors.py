"""Word vectors: related words are closer than unrelated ones."""

from __future__ import annotations

import pytest

from text2grad.text.vectors import word_vector


@pytest.mark.parametrize(
    ("word", "near", "far"),
    [("brilliant", "wonderful", "kettle"), ("price", "cost", "monday"), ("crashes", "crash", "lovely")],
)
def test_related_words_are_closer(word: str, near: str, far: str) -> None:
    vector, close, distant = map(word_vector, (word, near, far))
    assert vector is not None
    assert close is not None
    assert distant is not None
    assert float(vector @ close) > 0.3 > float(vector @ distant)


def test_a_vector_has_length_one_and_an_unknown_word_has_none() -> None:
    vector = word_vector("Wrong")
    assert vector is not None
    assert float(vector @ vector) == pytest.approx(1.0, abs=1e-5)
    assert word_vector("qxzzy") is None
