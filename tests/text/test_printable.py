from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from text2grad.text.printable import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "␛[31mred␛[0m"),
        ("\x1b]0;title\x07", "␛]0;title␇"),
        ("paid 100\rpaid 999", "paid 100␍paid 999"),
        ("\x9b2J", "�2J"),
        ("\u202ecod.exe\u2066", "�cod.exe�"),
        ("rm\x7f\x08", "rm␡␈"),
        ("lone \ud800", "lone �"),
        ("hidden\U000e0041", "hidden�"),
        ("two\nlines\tand Grüße, 東京, 👩‍👩‍👧, नमस्ते, می‌خواهم", "two\nlines\tand Grüße, 東京, 👩‍👩‍👧, नमस्ते, می‌خواهم"),
    ],
)
def test_commands_become_visible_and_text_stays(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text(st.characters()))
def test_offsets_stay_and_nothing_commands(text: str) -> None:
    shown = printable(text)
    assert len(shown) == len(text)
    assert not [c for c in shown if unicodedata.category(c) == "Cc" and c not in "\n\t"]
    assert not any(
        unicodedata.bidirectional(c) in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI") for c in shown
    )
    shown.encode()
    assert printable(shown) == shown
