"""Words in which texts differ."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from text2grad.report.text_diff import diff_words


def test_changed_words_are_marked_on_both_sides() -> None:
    left, right = diff_words("We meet on Friday at noon.", "We meet on Monday at noon, all of us.")
    assert [text for text, differs in left if differs] == ["Friday"]
    assert [text for text, differs in right if differs] == ["Monday", ", all of us"]
    assert diff_words("", "new") == ([], [("new", True)])


def test_long_texts_are_not_compared() -> None:
    long = "word " * 2_000
    assert diff_words(long, "other") == ([(long, False)], [("other", False)])


@given(st.text("ab \n.", max_size=30), st.text("ab \n.", max_size=30))
def test_the_segments_are_the_texts_and_equal_parts_agree(one: str, other: str) -> None:
    left, right = diff_words(one, other)
    assert "".join(text for text, _ in left) == one
    assert "".join(text for text, _ in right) == other
    assert [text for text, differs in left if not differs] == [text for text, differs in right if not differs]
