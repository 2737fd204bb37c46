"""Token differences between a text and its correction."""

import re

from text2grad.data.diff import diff_tokens

WORD = re.compile(r"\S+")


def test_replaced_and_deleted_tokens_are_ranges_of_the_old_text():
    assert diff_tokens("the big red cat sat", "the small cat", WORD) == ([(4, 11), (16, 19)], [])


def test_inserted_tokens_are_ranges_of_the_new_text():
    assert diff_tokens("the cat", "the old grey cat", WORD) == ([], [(4, 12)])


def test_only_normalized_tokens_are_compared():
    assert diff_tokens("The  CAT", "the cat", WORD, str.lower) == ([], [])
