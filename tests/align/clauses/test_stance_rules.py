"""Wordings whose stance is certain, each beside ones that only look alike."""

from __future__ import annotations

import pytest

from text2grad.align.answer.document import Document
from text2grad.align.clauses.clauses import Clause
from text2grad.align.clauses.stance_rules import correct_stance
from text2grad.align.reading import read_comment

CARD = (
    "Dear Grandma,\n\nHappy birthday! The mess in your garden is over: the boring slugs have won. "
    "I hope to see you in May.\n\nLove,\nPia"
)


def stance(comment: str, before: str = "unsure", answer: str = CARD) -> str:
    clause = Clause(0, len(comment), before, 0.6)  # type: ignore[arg-type]
    return correct_stance(comment, clause, Document(answer)).stance


@pytest.mark.parametrize(
    "comment",
    [
        "Far too stiff a greeting for a relative.",
        "Too clever an ending.",
        "It's too grand a word for slugs.",
        "a bit too cheerful",
        "Oh great, another joke about slugs.",
        "Ah, wonderful: a birthday card about pests.",
        "Oh, how lovely, she gets slugs for her birthday.",
    ],
)
def test_excess_and_mockery_are_blame(comment: str) -> None:
    assert stance(comment, "good") == "poor"


@pytest.mark.parametrize(
    "comment",
    ["Too good to be true!", "Oh, that's lovely.", "Oh great!", '"Too cold" is what I would say too.', "Too true."],
)
def test_what_looks_like_excess_or_mockery_keeps_its_stance(comment: str) -> None:
    assert stance(comment, "good") == "good"


@pytest.mark.parametrize("comment", ["The mess in the garden is great.", "The bit on boring slugs is perfectly fine."])
def test_words_of_the_answer_are_no_blame(comment: str) -> None:
    assert stance(comment, "poor") == "good"


@pytest.mark.parametrize(
    "comment",
    [
        "The mess is not great.",
        "The silly mess in the garden is fine.",  # a word of blame of its own
        "The opposite of the mess is true.",
        "The mess would be fine if it were shorter.",
    ],
)
def test_only_plain_praise_is_praise(comment: str) -> None:
    assert stance(comment, "poor") == "poor"


@pytest.mark.parametrize(
    "comment", ["Don't joke about slugs.", "Please stop teasing your grandmother.", "Avoid puns here."]
)
def test_who_forbids_something_blames_it(comment: str) -> None:
    assert stance(comment) == "poor"


@pytest.mark.parametrize("comment", ["Don't change the greeting.", "I don't mind slugs.", "Don't you love slugs?"])
def test_what_forbids_nothing_keeps_its_stance(comment: str) -> None:
    assert stance(comment) == "unsure"


def test_an_excess_is_blamed_in_a_reading() -> None:
    (span,) = read_comment("Too abrupt a start for a birthday card.", CARD).spans
    assert (CARD[span.start : span.end], span.label) == ("Happy birthday!", "poor")


@pytest.mark.parametrize(
    "comment",
    ["How charming!", "How truly thoughtful!", "The card is not too long.", "Not too sweet!", "+1 for it"],
)
def test_praise_in_few_words_is_praise(comment: str) -> None:
    assert stance(comment, "poor") == "good"


@pytest.mark.parametrize(
    "comment",
    ["How original.", "How rude!", "It is not too good.", "Not too clear.", "Great, now she hates slugs."],
)
def test_blame_that_looks_like_praise_in_few_words_is_blame(comment: str) -> None:
    assert stance(comment, "poor") == "poor"


def test_all_but_one_thing_is_unsure() -> None:
    assert stance("Everything but the greeting is dull.", "poor") == "unsure"


@pytest.mark.parametrize("word", ["Impressive", "Delightful", "Classy", "Catchy", "Well-worded", "Phenomenal"])
def test_a_word_of_praise_is_praise(word: str) -> None:
    assert {span.label for span in read_comment(f"{word}!", CARD).spans} == {"good"}
