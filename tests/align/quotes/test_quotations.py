from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from text2grad.align.quotes.quotations import find_quotations


def contents(comment: str) -> list[str]:
    return [comment[start:end] for start, end in find_quotations(comment)]


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ('The meeting was not on "Friday".', ["Friday"]),
        ("“one” and „zwei“ and «trois» and 「四」", ["one", "zwei", "trois", "四"]),
        ("'word' isn't the dog's, nor 'don't' the dogs'", ["word", "don't"]),
        ("‘word’ isn’t it, ‘don’t’ is", ["word", "don’t"]),
        ("the '90s were 'fun'", ["fun"]),
        ("`x = 1` and ``a `b` c``", ["x = 1", "a `b` c"]),
        ("```python\nx = 1\n```", ["x = 1"]),
        ('a 5" and a 6" screen', []),
        ('"over\ntwo lines" but "not over\n\na paragraph"', ["over\ntwo lines"]),
        ("\"he said 'no' to it\"", ["he said 'no' to it"]),
        ('"" and " " and "open', []),
    ],
)
def test_quotations(comment: str, expected: list[str]) -> None:
    assert contents(comment) == expected


@given(st.text(alphabet="ab \n\"'`“”‘’«»", max_size=40))
def test_quotations_are_inside_the_comment_in_order(comment: str) -> None:
    ends = 0
    for start, end in find_quotations(comment):
        assert ends <= start < end <= len(comment)
        assert comment[start:end].strip()
        ends = end
