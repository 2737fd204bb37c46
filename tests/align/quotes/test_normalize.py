from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from text2grad.align.quotes.normalize import fold_punctuation, fold_spaces, fold_typography, splits_word


@pytest.mark.parametrize(
    ("text", "normalized"),
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
def test_folding_typography(text: str, normalized: str) -> None:
    assert fold_typography(text).text == normalized


@pytest.mark.parametrize(
    ("text", "normalized"),
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
def test_folding_punctuation_keeps_words_numbers_and_operators(text: str, normalized: str) -> None:
    assert fold_punctuation(text).text == normalized


def test_folding_spaces_joins_what_lost_its_line_breaks() -> None:
    assert fold_spaces("for free 30 like it").text == fold_spaces("for free30 like it").text


def test_original_ranges() -> None:
    text = "A  ﬁne “café”"
    normalized = fold_typography(text)

    at = normalized.text.index("fine")
    assert text[slice(*normalized.original_range(at, at + 4))] == "ﬁne"
    assert text[slice(*normalized.original_range(0, 3))] == "A  ﬁ"
    assert text[slice(*fold_punctuation(text).original_range(7, 11))] == "café"


def test_composed_characters_come_from_all_their_parts() -> None:
    text = "un cafe\u0301 noir"
    normalized = fold_typography(text)
    at = normalized.text.index("é")
    assert normalized.original_range(at, at + 1) == (6, 8)


@given(st.text())
def test_original_ranges_are_valid_and_monotonic(text: str) -> None:
    for normalized in (fold_typography(text), fold_punctuation(text), fold_spaces(text)):
        assert len(normalized.text) == len(normalized.starts) == len(normalized.ends)
        assert normalized.starts == sorted(normalized.starts)
        assert normalized.ends == sorted(normalized.ends)
        assert all(0 <= start < end <= len(text) for start, end in zip(normalized.starts, normalized.ends, strict=True))


@given(st.text(alphabet="aB é\u0301“”'\n-—ﬁ1.", max_size=30))
def test_folding_is_idempotent(text: str) -> None:
    once = fold_typography(text).text
    assert fold_typography(once).text == once
    assert unicodedata.is_normalized("NFKC", once)


@pytest.mark.parametrize(
    ("text", "position", "inside"),
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
def test_positions_inside_words(text: str, position: int, inside: bool) -> None:
    assert splits_word(text, position) is inside
