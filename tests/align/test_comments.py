from __future__ import annotations

import pytest

from text2grad.align.comments import cited_quotations, find_mentions

ANSWER = "The meeting was on Friday, 4 May, in New York. Sales rose by 12%. The function word_count() is called twice."


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("The meeting was not on Friday.", ["Friday"]),
        ("Friday was the wrong day.", ["Friday"]),
        ("The Friday meeting in New York and Boston", ["Friday", "New York"]),
        ("They rose by 12%, not 15%.", ["12%"]),
        ("There are 4 errors, and line 4 is odd.", []),
        ("Why is word_count() called?", ["word_count"]),
        ("Sales did not rise.", []),
        ("i think the meeting was good", []),
    ],
)
def test_named_words_are_distinctive_words_of_the_answer(comment: str, expected: list[str]) -> None:
    assert [comment[start:end] for start, end in find_mentions(comment, ANSWER)] == expected


def cited(comment: str, answer: str = ANSWER) -> list[tuple[str, int | None]]:
    return [(comment[slice(*phrase)], match and match.start) for phrase, match in cited_quotations(comment, answer)]


def test_quotations_of_the_answer_with_their_places() -> None:
    comment = '"New York" is right, but "Friday" is wrong, and "the minutes" are not mentioned in the source.'
    places = [ANSWER.index("New York"), ANSWER.index("Friday"), None]
    assert cited(comment) == list(zip(["New York", "Friday", "the minutes"], places, strict=True))


def test_a_replacement_is_no_quotation_of_the_answer() -> None:
    assert cited('"Friday" should be "Monday".') == [("Friday", ANSWER.index("Friday"))]
    assert cited('It should be "in May", not "4 May".') == [("4 May", ANSWER.index("4 May"))]


def test_the_right_occurrence() -> None:
    answer = "The cat sat. The dog ran. The cat slept."
    assert cited('The second "cat" is wrong.', answer) == [("cat", 30)]
    assert cited('"ran" is wrong, and "cat" is wrong.', answer) == [("ran", 21), ("cat", 30)]
