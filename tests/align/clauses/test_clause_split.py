from __future__ import annotations

import pytest

from text2grad.align.clauses.clause_split import mask_quotations, split_clauses, split_sentences
from text2grad.align.stance.stance_features import MASK
from text2grad.align.stance.stance_model import StanceProbabilities


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in split_sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("See e.g. Dr. Lee. Next", ["See e.g. Dr. Lee.", "Next"]),
        ("one\n- two; three", ["one", "- two", "three"]),
        ("a (b. c; d) e. f", ["a (b. c; d) e.", "f"]),
        ("1. one\n2. two", ["1. one", "2. two"]),
        ("x.y is 3.5", ["x.y is 3.5"]),
        (" \n ", []),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def test_quotations_are_masked_character_by_character() -> None:
    assert mask_quotations('say "a b" twice') == f'say "{MASK * 3}" twice'


def _judge(text: str) -> list[str]:
    """Split with a judge for which every part has a stance of its own, praise if it is "good" or "nice"."""

    def judge(start: int, end: int, before: str, after: str) -> StanceProbabilities:
        good = 0.9 if {"good", "nice"} & set(text[start:end].strip(".").split()) else 0.1
        return StanceProbabilities(good, 1 - good, 0.0, 0.0)

    return [text[piece.start : piece.end] for piece in split_clauses(text, judge)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The end is good but the start is bad.", ["The end is good", "the start is bad."]),
        ("The end is good, the start is bad.", ["The end is good", "the start is bad."]),
        ("But the end is good.", ["the end is good."]),
        ("Although the end is good, the start is bad.", ["the end is good", "the start is bad."]),
        ("It is good, but wrong.", ["It is good, but wrong."]),
        ("It is good and nice.", ["It is good and nice."]),
        ("It says A but the source says B.", ["It says A but the source says B."]),
        ("Nothing but good.", ["Nothing but good."]),
        ("All good except for the end.", ["All good", "the end."]),
        ("Except for the end it is good.", ["the end", "it is good."]),
    ],
)
def test_a_sentence_is_split_where_both_sides_say_something(text: str, expected: list[str]) -> None:
    assert _judge(text) == expected
