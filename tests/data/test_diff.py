"""Token differences between a text and its correction."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from text2grad.data.diff import corrected_part, diff_tokens, insertion_point

WORD = re.compile(r"\S+")


def test_replaced_and_deleted_tokens_are_ranges_of_the_old_text():
    assert diff_tokens("the big red cat sat", "the small cat", WORD) == ([(4, 11), (16, 19)], [])


def test_inserted_tokens_are_ranges_of_the_new_text():
    assert diff_tokens("the cat", "the old grey cat", WORD) == ([], [(4, 12)])


def test_only_normalized_tokens_are_compared():
    assert diff_tokens("The  CAT", "the cat", WORD, str.lower) == ([], [])


@pytest.mark.parametrize(
    ("part", "after", "expected"),
    [
        ("red", "the big blue cat sat", "blue"),
        ("red", "the big cat sat", ""),
        ("red", "The Big red cat slept", None),  # nothing changed there
        ("big red", "the small cat sat", "small"),
        ("red", "a dog", None),  # nothing of its surroundings is left
        ("red", "the big and very blue cat sat", "and very blue"),
        ("the", "A big red cat sat", "A"),
        ("sat", "the big red cat was asleep", "was asleep"),
        ("re", "the big rough cat sat", None),  # a part of a word that is gone
        ("re", "the big mad cat sat", "ma"),  # a part of a word that keeps its end
    ],
)
def test_the_corrected_part(part, after, expected):
    before = "the big red cat sat"
    start = before.index(part)
    assert corrected_part(before, after, (start, start + len(part))) == expected


@pytest.mark.parametrize(
    ("before", "after", "corrected"),
    [
        ("a cat", "a big cat", "a big cat"),
        ("a cat", "so a cat", "so a cat"),
        ("a cat", "a cat sat", "a cat sat"),
        ("", "a", "a"),
    ],
)
def test_insertions_go_back_to_their_place(before, after, corrected):
    _, (bounds,) = diff_tokens(before, after, WORD, str.lower)
    at, words = insertion_point(before, after, bounds)
    assert before[:at] + words + before[at:] == corrected


texts = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=8).map(" ".join)


@given(texts, texts)
def test_a_part_with_its_correction_agrees_with_the_corrected_text_around_it(before, after):
    for start, end in diff_tokens(before, after, WORD)[0]:
        part = corrected_part(before, after, (start, end))
        assert part is not None
        words = (before[:start] + part).split()[-1:] + part.split()
        assert all(word in after.split() for word in part.split()), words
