from __future__ import annotations

import pytest

from text2grad.align.comments import find_mentions, spans_from_comment

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


def test_a_quoted_word_becomes_a_span() -> None:
    comment = 'Well written. The meeting was not on "friday".'
    (span,), unmatched = spans_from_comment(comment, ANSWER, critic="anna")

    assert unmatched == []
    assert ANSWER[span.start : span.end] == "Friday"
    assert span.phrase is not None
    assert comment[slice(*span.phrase)] == "friday"
    assert (span.label, span.critic, span.match, span.confidence) == ("poor", "anna", "normalized", 0.98)
    assert span.reason == 'The meeting was not on "friday".'


def labels(comment: str, answer: str = ANSWER, **options: str) -> tuple[list[tuple[str, str]], list[str]]:
    spans, unmatched = spans_from_comment(comment, answer, **options)  # type: ignore[arg-type]
    return [(answer[span.start : span.end], span.label) for span in spans], unmatched


def test_praise_blame_and_what_is_not_there() -> None:
    comment = '"New York" is right, but "Friday" is wrong, and "the minutes" are not mentioned in the source.'
    assert labels(comment) == ([("New York", "good"), ("Friday", "poor")], ["the minutes"])


def test_a_replacement_is_neither_a_span_nor_unmatched() -> None:
    assert labels('"Friday" should be "Monday".') == ([("Friday", "poor")], [])
    assert labels('It should be "in May", not "4 May".') == ([("4 May", "poor")], [])


def test_named_words_count_where_no_quotation_does() -> None:
    assert labels("The meeting was not on Friday.") == ([("Friday", "poor")], [])
    assert labels('Friday should be "Monday".') == ([("Friday", "poor")], [])
    assert labels('"New York" is right. Friday is not.') == ([("New York", "good")], [])
    (span,), _ = spans_from_comment("The meeting was not on Friday.", ANSWER)
    assert (span.match, span.confidence) == ("exact", 0.8)


def test_a_given_label_overrides_the_stance_but_not_the_suggestions() -> None:
    assert labels('"Friday" should be "Monday".', label="good") == ([("Friday", "good")], [])


def test_the_right_occurrence() -> None:
    answer = "The cat sat. The dog ran. The cat slept."
    spans, _ = spans_from_comment('The second "cat" is wrong.', answer)
    assert [span.start for span in spans] == [30]
    spans, _ = spans_from_comment('"ran" is wrong, and "cat" is wrong.', answer)
    assert [span.start for span in spans] == [21, 30]


def test_a_place_that_is_mentioned_twice_is_one_span() -> None:
    assert labels('"Friday" is wrong. Really, "Friday" is wrong.') == ([("Friday", "poor")], [])


def test_a_comment_about_nothing_in_particular() -> None:
    assert labels("Could be better.") == ([], [])
    assert labels("") == ([], [])
