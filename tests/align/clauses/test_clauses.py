from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from text2grad.align.clauses.clauses import MIN_PROBABILITY, Clause, combine_stances, read_clauses


def read(comment: str) -> list[tuple[str, str]]:
    return [(comment[clause.start : clause.end], clause.stance) for clause in read_clauses(comment)]


def missing(comment: str) -> list[str]:
    ranges = [clause.missing for clause in read_clauses(comment)]
    return [comment[slice(*bounds)] for bounds in ranges if bounds]


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        (
            "The loop is fine, but the return value is off by one.",
            [("The loop is fine", "good"), ("the return value is off by one.", "poor")],
        ),
        ("Apart from the ending I liked it.", [("the ending", "poor"), ("I liked it.", "good")]),
        ("All correct except the date.", [("All correct", "good"), ("the date.", "poor")]),
        ("Good intro, bad ending.", [("Good intro", "good"), ("bad ending.", "poor")]),
        ("While I enjoyed it, the end drags on.", [("I enjoyed it", "good"), ("the end drags on.", "poor")]),
        (
            "The loop is fine. The return value isn't.",
            [("The loop is fine.", "good"), ("The return value isn't.", "poor")],
        ),
        ("Clear, concise and accurate.", [("Clear, concise and accurate.", "good")]),
        ("It was not Friday but Monday.", [("It was not Friday but Monday.", "poor")]),
        ("The last sentence is exaggerated.", [("The last sentence is exaggerated.", "poor")]),
        (
            "all the summary facts are found in the source text",
            [("all the summary facts are found in the source text", "good")],
        ),
    ],
)
def test_a_comment_is_split_into_what_it_says(comment: str, expected: list[tuple[str, str]]) -> None:
    assert read(comment) == expected


def test_quotations_are_not_split_and_their_words_take_no_stance() -> None:
    comment = 'I like how "the storm is bad. But not the rain" is put.'
    assert read(comment) == [(comment, "good")]


@pytest.mark.parametrize("comment", ["", "  ", "Thanks!", "Hi all,", "...", "\n\n", "Kind regards"])
def test_what_says_nothing_of_the_answer_is_left_out(comment: str) -> None:
    assert read_clauses(comment) == []


@pytest.mark.parametrize(
    ("comment", "stance"),
    [
        ("There is nothing wrong with the intro.", "good"),
        ("I can't find a single mistake.", "good"),
        ("Could not be clearer.", "good"),
        ("Far from clear.", "poor"),
        ("It would be better if it were shorter.", "poor"),
        ("Not only correct but also elegant.", "good"),
        ("I am not sure whether the year is right.", "unsure"),
        ("The article is about a strike.", "unsure"),
    ],
)
def test_negation_wishes_and_doubt(comment: str, stance: str) -> None:
    assert combine_stances(read_clauses(comment))[0] == stance


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("It forgot to mention the price.", "the price"),
        ("No mention of the opening hours.", "the opening hours"),
        ("It should also say how long it takes.", "how long it takes"),
        ("Where is the price?", "the price"),
        ("I miss an example.", "an example"),
        ("There is nothing about the side effects.", "the side effects"),
        ("It leaves out the reason for the strike.", "the reason for the strike"),
        ("You could have added a closing line.", "a closing line"),
        ("I would have liked to hear about the trial.", "the trial"),
        ("Clear, but the oven temperature is missing.", "the oven temperature"),
    ],
)
def test_what_is_missing_is_named(comment: str, expected: str) -> None:
    assert missing(comment) == [expected]


@pytest.mark.parametrize(
    "comment",
    [
        "The source text does not mention his first name.",
        "Nothing is missing.",
        "It doesn't leave anything out.",
        "The date is wrong.",
        "I love the ending.",
    ],
)
def test_what_the_source_lacks_or_nothing_lacks_is_not_missing(comment: str) -> None:
    assert missing(comment) == []


def test_a_comment_takes_the_stance_with_most_weight() -> None:
    clauses = [
        Clause(0, 1, "good", 0.9),
        Clause(1, 2, "poor", 0.8),
        Clause(2, 3, "poor", 0.7),
        Clause(3, 4, "unsure", 0.9),
    ]
    stance, probability = combine_stances(clauses)
    assert stance == "poor"
    assert probability == pytest.approx(0.8 * 1.5 / 2.4)
    assert combine_stances([]) == ("unsure", 1.0)
    assert combine_stances(clauses[3:]) == ("unsure", 0.9)


_TOKENS = r"""the loop but not good bad , and . ? ! ; except for missing I would if " ' ` ( ) is was no 3 é 本 it"""
_WORDS = st.sampled_from([*_TOKENS.split(), "\n"])


@given(st.one_of(st.text(max_size=80), st.lists(_WORDS, max_size=25).map(" ".join)))
@example("H0 EXCEPT 0")
def test_clauses_are_inside_the_comment_in_order(comment: str) -> None:
    end = 0
    for clause in read_clauses(comment):
        assert end <= clause.start < clause.end <= len(comment)
        assert comment[clause.start : clause.end] == comment[clause.start : clause.end].strip()
        assert 0.0 < clause.probability <= 1.0
        assert clause.stance == "unsure" or clause.probability >= 0.5
        if clause.missing:
            assert clause.stance == "poor"
            assert clause.start <= clause.missing[0] < clause.missing[1] <= clause.end
        end = clause.end


def test_stances_that_are_taken_are_probable() -> None:
    clauses = read_clauses("The loop is fine. It crashes. I don't know. Perhaps the date is wrong, perhaps not.")
    assert all(clause.probability >= MIN_PROBABILITY for clause in clauses if clause.stance != "unsure")


def texts(comment: str) -> list[str]:
    return [comment[clause.start : clause.end].rstrip(".") for clause in read_clauses(comment)]


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("Nothing on food supplies, and no mention of a radio.", ["Nothing on food supplies", "no mention of a radio"]),
        ("No docstring, no example.", ["No docstring", "no example"]),
        (
            "Our address is nowhere, neither is a phone number.",
            ["Our address is nowhere", "neither is a phone number"],
        ),
        ("It has no date and no price.", ["It has no date", "no price"]),
    ],
)
def test_each_thing_that_is_missing_is_a_clause(comment: str, expected: list[str]) -> None:
    assert texts(comment) == expected


@pytest.mark.parametrize(
    "comment",
    ["No gain, no pain.", "It is short, no fluff and nothing to add.", "There is no mention of the price or the date."],
)
def test_other_negations_do_not_split(comment: str) -> None:
    assert len(texts(comment)) == 1


@pytest.mark.parametrize(
    ("comment", "stances"),
    [
        ("Short enough but the only number that matters is the wrong one.", ["good", "poor"]),
        ("Short and readable, yet silent on the costs of the move.", ["good", "poor"]),
        ("The running total is smart, but // throws the decimals away.", ["good", "poor"]),
        ("You take it in at a glance while your bus pulls in.", ["good"]),
        ("It was not on Friday but on Monday.", ["poor"]),
    ],
)
def test_a_contrast_of_praise_and_blame_splits(comment: str, stances: list[str]) -> None:
    assert [clause.stance for clause in read_clauses(comment)] == stances
