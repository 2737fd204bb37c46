from __future__ import annotations

import pytest

from text2grad.align.quotes.fuzzy import find_similar_windows
from text2grad.align.quotes.normalize import fold_punctuation

TEXT = (
    "The committee met on Friday in Berlin and agreed on a budget of 40 million euros for the new bridge. "
    "Critics said that the bridge was not needed, while the mayor called it the most important project of the decade."
)


def found(quote: str, text: str = TEXT, threshold: float = 0.75) -> list[str]:
    normalized = fold_punctuation(text)
    return [
        normalized.text[window.start : window.end]
        for window in find_similar_windows(fold_punctuation(quote), normalized, threshold)
    ]


@pytest.mark.parametrize(
    ("quote", "window"),
    [
        ("Fridy", "friday"),
        ("comittee met on Firday in Berlin", "committee met on friday in berlin"),
        ("the bridge was really not needed", "the bridge was not needed"),
        (
            "the mayor described it as the most important project of the decade",
            "the mayor called it the most important project of the decade",
        ),
    ],
)
def test_misquotations_are_found_as_whole_words(quote: str, window: str) -> None:
    assert found(quote) == [window]


@pytest.mark.parametrize(
    "quote",
    [
        "Monday",
        "a budget of 50 million",
        "the king called it a scandal",
        "art",
        "elephants are the largest animals that live on land in Africa today",
    ],
)
def test_other_words_and_other_numbers_are_not(quote: str) -> None:
    assert found(quote) == []


def test_the_threshold_decides() -> None:
    quote = "the mayor praised it as the greatest project of the decade"
    assert found(quote) == []
    assert found(quote, threshold=0.6) == ["the mayor called it the most important project of the decade"]


def test_equally_good_windows_are_all_reported_in_order() -> None:
    text = "The protein unfolds. Heat the pan. The protein sets."
    assert found("the protien", text) == ["the protein", "the protein"]


def test_a_quotation_longer_than_the_text() -> None:
    assert found("It is raining agin", "it is raining again") == ["it is raining again"]
    assert found(TEXT, "bridge") == []


def test_scripts_without_spaces() -> None:
    assert found("会议在星期五下午举行了的", "昨天说会议在星期五下午举行的消息") == ["会议在星期五下午举行的"]
