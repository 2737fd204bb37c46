"""Comments read as a whole: the words, what they earn, what is missing, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from text2grad.align.reading import NO_PLACE, NOT_MISSING, NOT_SURE, Reading, read_comment

POOL = (
    "The council decided on Thursday to close the old pool on Mill Lane. Repairs would have cost three million pounds. "
    "It is the worst decision in the history of the town."
)
FACTORIAL = "def factorial(n):\n    x = 1\n    for i in range(1, n):\n        x *= i\n    return x\n"
DEV = Path(__file__).parents[2] / "benchmarks" / "comments_dev.jsonl"


def spans(reading: Reading, answer: str) -> list[tuple[str, str]]:
    return [(answer[span.start : span.end], span.label) for span in reading.spans]


@pytest.mark.parametrize(
    ("comment", "answer", "expected"),
    [
        ("The last sentence is exaggerated.", POOL, [("It is the worst decision in the history of the town.", "poor")]),
        (
            "The loop is fine, but the return value is off by one.",
            FACTORIAL,
            [("for i in range(1, n):\n        x *= i", "good"), ("return x", "poor")],
        ),
        ("The code fails to handle negative inputs.", FACTORIAL, [("range(1, n)", "poor")]),
        ('"Mill Lane" is correct.', POOL, [("Mill Lane", "good")]),
        ('"Thursday" should be "Tuesday".', POOL, [("Thursday", "poor")]),
        ("The vote was on Tuesday, not Thursday.", POOL, [("Thursday", "poor")]),
        ('The last sentence is wrong to say "town".', POOL, [("town", "poor")]),
    ],
)
def test_what_a_comment_is_about(comment: str, answer: str, expected: list[tuple[str, str]]) -> None:
    assert spans(read_comment(comment, answer), answer) == expected


def test_what_is_missing_has_no_place() -> None:
    reading = read_comment("It forgot to mention the price.", POOL)
    assert [omission.text for omission in reading.omissions] == ["the price"]
    assert reading.spans == []


def test_how_certain_it_is_that_something_is_missing_is_told() -> None:
    (plain,) = read_comment("It forgot to mention how many swimmers there were.", POOL).omissions
    (stated,) = read_comment("It does not say: why the pool was loved.", POOL).omissions
    assert 0.4 <= plain.confidence < 1
    assert stated.confidence == 0.95


def test_what_is_there_is_not_missing_and_says_so() -> None:
    reading = read_comment("It forgot to mention the cost of the repairs.", POOL)
    assert (reading.spans, reading.omissions) == ([], [])
    assert [reason for _, reason in reading.refused] == [NOT_MISSING]


def test_a_comment_on_something_else_is_refused() -> None:
    reading = read_comment("The umpire's umbrella in Karachi is wrong.", POOL)
    assert reading.spans == []
    assert [reason for _, reason in reading.refused] == [NO_PLACE]


def test_one_quotation_that_is_not_there_does_not_discard_the_rest() -> None:
    reading = read_comment('"Thursday" is wrong. "the mayor\'s dog" is wrong too.', POOL)
    assert ("Thursday", "poor") in spans(reading, POOL)
    assert reading.unmatched == ["the mayor's dog"]


def test_a_doubt_earns_nothing_and_is_shown() -> None:
    reading = read_comment("I'm not sure whether Thursday is right.", POOL)
    assert reading.spans == []
    assert NOT_SURE in [reason for _, reason in reading.refused]


def test_praise_of_all_is_one_span_of_all() -> None:
    reading = read_comment("Great summary!", POOL)
    assert [(span.start, span.end, span.label, span.match) for span in reading.spans] == [
        (0, len(POOL), "good", "whole")
    ]


def test_a_label_overrides_the_stance() -> None:
    assert spans(read_comment('"Mill Lane" is correct.', POOL, label="poor"), POOL) == [("Mill Lane", "poor")]


def test_a_span_tells_its_critic_reason_and_phrase() -> None:
    comment = 'Well written. But "Thursday" is wrong.'
    span = next(span for span in read_comment(comment, POOL, critic="anna").spans if span.label == "poor")
    assert (span.critic, span.reason) == ("anna", '"Thursday" is wrong.')
    assert comment[slice(*(span.phrase or (0, 0)))] == "Thursday"


def test_most_of_our_own_comments_point_at_their_words() -> None:
    right = total = 0
    for line in DEV.read_text("utf-8").splitlines():
        answer = json.loads(line)
        for comment in answer["comments"]:
            reading = read_comment(comment["comment"], answer["completion"], answer["prompt"])
            places = [target.place for item in reading.clauses for target in item.targets]
            for span in (span for clause in comment["clauses"] for span in clause["spans"]):
                start = answer["completion"].index(span)
                total += 1
                right += any(s < start + len(span) and start < e for s, e in places)
    assert right / total > 0.8


@settings(max_examples=150, deadline=None)
@given(
    comment=st.one_of(st.text(max_size=80), st.sampled_from(["The last sentence", "line 3", '"x" is bad', "step 0"])),
    answer=st.one_of(
        st.text(max_size=120), st.sampled_from([POOL, FACTORIAL, "- a\n- b", "Dear x,\n\nBest,\nI", "1. a"])
    ),
    prompt=st.one_of(st.none(), st.text(max_size=30)),
)
def test_ranges_are_inside_and_nothing_crashes(comment: str, answer: str, prompt: str | None) -> None:
    reading = read_comment(comment, answer, prompt)
    for span in reading.spans:
        assert 0 <= span.start < span.end <= len(answer)
        assert 0 <= span.confidence <= 1
        assert span.phrase is None or 0 <= span.phrase[0] < span.phrase[1] <= len(comment)
    for omission in reading.omissions:
        assert omission.text in comment


_WORDS = st.sampled_from(
    [
        "the",
        "last",
        "first",
        "sentence",
        "line",
        "loop",
        "title",
        "is",
        "wrong",
        "great",
        "not",
        "no",
        "date",
        "price",
        "step",
        "3",
        "about",
        '"pool"',
        ",",
        ".",
        "?",
        "but",
        "x",
    ]
)


@settings(max_examples=150, deadline=None)
@given(
    words=st.lists(_WORDS, max_size=14), answer=st.sampled_from([POOL, FACTORIAL, "Title\n\n1. Do 3 x.\n2. Pay $5."])
)
def test_comments_of_these_words_are_read_without_a_crash(words: list[str], answer: str) -> None:
    for span in read_comment(" ".join(words), answer).spans:
        assert answer[span.start : span.end].strip()


@pytest.mark.parametrize("comment", ['"Mill Lane" is wrong, yes; "Mill Lane" is wrong.', "Well, yes."])
def test_interjection_says_nothing_of_the_answer(comment: str) -> None:
    assert {span.label for span in read_comment(comment, POOL).spans} <= {"poor"}


def test_words_that_the_answer_does_not_have_find_their_sentence() -> None:
    answer = "Boil the potatoes for 20 minutes. Serve with butter. Remember: life is too short for bad food!"
    reading = read_comment("The preachy remark at the end should go.", answer)
    (span,) = reading.spans
    assert (span.label, answer[span.start : span.end].strip("!").removeprefix("Remember: ")) == (
        "poor",
        "life is too short for bad food",
    )


def test_a_corrected_clause_blames_only_what_it_corrects() -> None:
    answer = "We meet on Friday at noon. Bring cake."
    reading = read_comment("The meeting was on Monday, not Friday. Cake is a nice touch.", answer)
    blamed = [(answer[s.start : s.end], s.replacement) for s in reading.spans if s.label == "poor"]
    assert blamed == [("Friday", "Monday")]


def test_praise_of_the_answer_by_its_kind_is_about_the_whole() -> None:
    answer = "Pancakes\n\n1. Mix flour with two eggs.\n2. Add the milk slowly.\n3. Fry in hot butter.\n\nEnjoy!"
    for comment in ("Great recipe!", "Great recipe, very clear and easy to follow!"):
        (span,) = read_comment(comment, answer).spans
        assert (span.label, span.match, answer[span.start : span.end]) == ("good", "whole", answer)


def test_the_details_of_a_statement_of_support_are_not_blamed() -> None:
    comment = "The summary is supported by the source text: that a man died in a crash, that he was not found."
    reading = read_comment(comment, "A man died in a helicopter crash and was not found.", "A man died in a crash.")
    assert [span for span in reading.spans if span.label == "poor"] == []


def test_a_line_that_states_an_omission_is_one_clause_whatever_it_says() -> None:
    comment = 'It does not say: The pool had a "wave machine". It was loved. Nobody paid.\n"Mill Lane" is wrong.'
    reading = read_comment(comment, POOL)
    assert [omission.text for omission in reading.omissions] == [
        'The pool had a "wave machine". It was loved. Nobody paid'
    ]
    assert spans(reading, POOL) == [("Mill Lane", "poor")]


def test_what_a_quotation_is_compared_with_is_not_blamed() -> None:
    comment = '"Mill Lane" is not what the article says: The council decided to close the old pool on Thursday.'
    assert spans(read_comment(comment, POOL), POOL) == [("Mill Lane", "poor")]


def test_a_correction_in_a_comment_on_another_answer_is_not_made() -> None:
    comment = (
        "The source text doesn't mention Koeman's position or first name or Ward-Prowse's position, injury type, or "
        "length of injury. Remove the information about Koeman's first name from the summary."
    )
    answer = "A record number of avocet chicks have hatched at a County Durham nature reserve."
    assert read_comment(comment, answer).spans == []


def test_an_order_that_quotes_the_answer_is_followed_whatever_else_the_comment_says() -> None:
    answer = "Smoking is strictly and absolutely forbidden and will be prosecuted."
    order = 'replace "strictly and absolutely forbidden and will be prosecuted" with "possible on the terrace"'
    for comment in (order, f"Be friendly: {order}", f"Tone!! Be friendly: {order}."):
        (span,) = read_comment(comment, answer).spans
        assert (answer[span.start : span.end], span.label) == (answer[11:-1], "poor"), comment
        assert span.replacement == "possible on the terrace"


def test_a_mark_is_a_verdict_on_the_whole_answer_unless_a_label_says_otherwise() -> None:
    assert spans(read_comment("👍", POOL), POOL) == [(POOL, "good")]
    assert spans(read_comment("👎", POOL, critic="human"), POOL) == [(POOL, "poor")]
    assert spans(read_comment("👍", POOL, label="poor"), POOL) == [(POOL, "poor")]
    assert read_comment("👍", "").spans == []


def test_in_an_answer_of_one_sentence_a_sentence_may_be_another_thing() -> None:
    answer = "Two men have been arrested after a teenager was hurt in Kent."
    assert read_comment("The jail sentence is not mentioned in the source.", answer).spans == []


def test_what_should_not_be_said_is_blamed_not_missing() -> None:
    answer = "Whisk the eggs. Fry them in butter. Serve them with syrup."
    reading = read_comment("Don't tell people to use syrup.", answer)
    assert [(answer[span.start : span.end], span.label) for span in reading.spans] == [
        ("Serve them with syrup.", "poor")
    ]
    assert reading.omissions == []


@pytest.mark.parametrize(
    "comment",
    ["Exactly what I asked for", "One tidy sentence with the essentials.", "Just right, thank you!"],
)
def test_praise_that_names_no_word_of_one_sentence_is_of_all_of_it(comment: str) -> None:
    answer = "The painter Alma Reyes has given 31 works to the museum in Tarifa."
    reading = read_comment(comment, answer)
    assert [(answer[s.start : s.end], s.label) for s in reading.spans] == [(answer, "good")]


def test_blame_that_names_no_word_of_one_sentence_is_not_of_all_of_it() -> None:
    answer = "The painter Alma Reyes has given 31 works to the museum in Tarifa."
    reading = read_comment("The zebra is in the wrong colour.", answer)
    assert all(span.end - span.start < len(answer) for span in reading.spans)


@pytest.mark.parametrize(
    "words",
    ["not too ", "but ", "good and bad and ", "no date and no price and ", "wrong a, ", "- - ", "apart from the "],
)
@pytest.mark.parametrize("answer", ["We meet on Friday at noon. Bring cake.", "def f(n):\n    return n + 1"])
def test_an_endless_sentence_is_read_without_a_crash(words: str, answer: str) -> None:
    read_comment(words * (4000 // len(words)), answer, "When?")


def test_the_last_of_three_things_is_missing_too() -> None:
    reading = read_comment("It has no date and no price and no address.", "We meet at noon. Bring cake.")
    assert [omission.text for omission in reading.omissions] == ["date", "price", "address"]
