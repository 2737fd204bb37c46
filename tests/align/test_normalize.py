from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from text2grad.align.normalize import folded, splits_word, squeezed, worded


@pytest.mark.parametrize(
    ("text", "spelling"),
    [
        ("The  Report\n\tsays", "the report says"),
        ("“Don’t” – she said", "'don't' - she said"),
        ("ﬁne…", "fine..."),
        ("Straße", "strasse"),
        ("Ｆｕｌｌ", "full"),
        ("zero\u200bwidth soft\u00adhyphen", "zerowidth softhyphen"),
        ("cafe\u0301", "café"),
        ("\u1100\u1161", "가"),
    ],
)
def test_folding_makes_spellings_alike(text: str, spelling: str) -> None:
    assert folded(text).text == spelling


@pytest.mark.parametrize(
    ("text", "spelling"),
    [
        ("“Well,” he said: (stop)!", "well he said stop"),
        ("i.e. it's done. . .", "i e its done"),
        ("0. 67 and 6.70", "0.67 and 6.70"),
        ("1 5 or 1.5 or 1, 5", "1 5 or 1.5 or 1,5"),
        ("covid-19 at -5 degrees", "covid 19 at -5 degrees"),
        ("**very** important", "very important"),
        ("x * y, x*y and a / b", "x * y x * y and a / b"),
        ("x < 0 + 1", "x < 0 + 1"),
        ("São Paulo", "sao paulo"),
        ("...", ""),
    ],
)
def test_wording_keeps_words_numbers_and_operators(text: str, spelling: str) -> None:
    assert worded(text).text == spelling


def test_squeezing_joins_what_lost_its_line_breaks() -> None:
    assert squeezed("for free 30 like it").text == squeezed("for free30 like it").text


def test_a_spelling_knows_where_its_characters_came_from() -> None:
    text = "A  ﬁne “café”"
    spelling = folded(text)

    at = spelling.text.index("fine")
    assert text[slice(*spelling.origin(at, at + 4))] == "ﬁne"
    assert text[slice(*spelling.origin(0, 3))] == "A  ﬁ"
    assert text[slice(*worded(text).origin(7, 11))] == "café"


def test_composed_characters_come_from_all_their_parts() -> None:
    text = "un cafe\u0301 noir"
    spelling = folded(text)
    at = spelling.text.index("é")
    assert spelling.origin(at, at + 1) == (6, 8)


@given(st.text())
def test_origins_lie_in_the_text_and_never_go_back(text: str) -> None:
    for spelling in (folded(text), worded(text), squeezed(text)):
        assert len(spelling.text) == len(spelling.starts) == len(spelling.ends)
        assert spelling.starts == sorted(spelling.starts)
        assert spelling.ends == sorted(spelling.ends)
        assert all(0 <= start < end <= len(text) for start, end in zip(spelling.starts, spelling.ends, strict=True))


@given(st.text(alphabet="aB é\u0301“”'\n-—ﬁ1.", max_size=30))
def test_folding_settles(text: str) -> None:
    once = folded(text).text
    assert folded(once).text == once
    assert unicodedata.is_normalized("NFKC", once)


@pytest.mark.parametrize(
    ("text", "position", "parts"),
    [
        ("party", 1, True),
        ("an art", 2, False),
        ("an art", 0, False),
        ("an art", 6, False),
        ("word_count", 5, True),
        ("word_count", 4, True),
        ("1.5", 1, True),
        ("1.5", 2, True),
        ("1,000", 1, True),
        ("1,2,3", 1, False),
        ("in 2012.", 7, False),
        ("cafe\u0301", 4, True),
        ("cafe\u0301 noir", 5, False),
        ("e\u0301te\u0301", 2, True),
        ("周五的会议", 2, False),
        ("금요일에", 3, False),
        ("👩\u200d💻", 1, True),
    ],
)
def test_what_a_cut_would_part(text: str, position: int, parts: bool) -> None:
    assert splits_word(text, position) is parts
