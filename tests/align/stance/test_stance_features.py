from __future__ import annotations

import pytest

from text2grad.align.stance.stance_features import MASK, extract_features, find_roles, split_tokens


def roles(text: str) -> str:
    return "".join(find_roles(split_tokens(text))[0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no quarrel with it", "NB"),
        ("not a single mistake", "NB"),
        ("hard to find fault with", "NyB"),
        ("clearly weakest", "PB"),
        ("the date of the phone call", ""),
        ("it reads like a manual", "y"),
        ("I like it", "iP"),
        ("unhelpful", "B"),
        ("spot on", "P"),
        ("doesn't", "N"),
    ],
)
def test_words_have_roles(text: str, expected: str) -> None:
    assert roles(text) == expected


def test_tokens_of_code_and_quotations() -> None:
    assert split_tokens(f"word_count() isn’t the dog's {MASK * 4}, 3.5%?!") == [
        "CODE", "isn't", "the", "dog", "QUOTE", "0", "?",
    ]  # fmt: skip


def test_negation_turns_the_sign() -> None:
    assert "sign:1" in extract_features("There is no mistake in it.")
    assert "sign:-1" in extract_features("It is not good.")


def test_an_idiom_at_the_end_is_no_longer_than_the_clause() -> None:
    tokens = split_tokens("the dates are way off")
    letters, idioms = find_roles(tokens)
    assert len(letters) == len(tokens)
    assert idioms == ["way off"]
