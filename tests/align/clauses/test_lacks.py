"""Clauses that speak of a lack without complaining of one, each beside ones that do complain."""

from __future__ import annotations

import pytest

from text2grad.align.clauses.lacks import denies_lack, is_needless, welcomes_lack
from text2grad.align.reading import read_comment

TOUR = (
    "The tour takes two hours and costs 30 dollars. I am sorry for the late reply. We start at ten. Bring a warm coat."
)


@pytest.mark.parametrize(
    "comment",
    [
        "No essential fact is omitted.",
        "No key step has been forgotten here.",
        "None of the main points are missing.",
        "Nothing of importance was left out.",
        "Not a detail is lacking in this text.",
        "There is nothing missing.",
    ],
)
def test_a_denied_lack_is_praise(comment: str) -> None:
    assert denies_lack(comment)
    reading = read_comment(comment, TOUR)
    assert not reading.omissions
    assert all(span.label == "good" for span in reading.spans)


@pytest.mark.parametrize(
    "comment",
    [
        "I am happy that you skipped the history.",
        "You wisely left out the phone number.",
        "Thank you for leaving the gossip out.",
        "It was sensible not to mention the weather.",
        "Good thing there is no map.",
        "Luckily it doesn't mention politics.",
        "I appreciate that the phone number is not given.",
        "Nice job avoiding the topic of money.",
        "You were right to omit the names.",
    ],
)
def test_who_is_glad_of_a_lack_praises_it(comment: str) -> None:
    assert welcomes_lack(comment)
    reading = read_comment(comment, TOUR)
    assert not reading.omissions
    assert all(span.label == "good" for span in reading.spans)


@pytest.mark.parametrize(
    "comment",
    [
        "Sadly you left out the phone number.",
        "The nice museum is not mentioned.",
        "I love the tour but you left out the map.",
        "I am not happy that you left out the map.",
        "It would be good to mention the museum.",
        "You are right that the map is missing.",
        "No hint of what is missing.",
        "Is it good that you left out the map?",
        "The good parts are left out.",
        "It is less good that it gives no reason.",
        "No map is given.",
    ],
)
def test_a_complaint_of_a_lack_is_none_of_both(comment: str) -> None:
    assert not denies_lack(comment)
    assert not welcomes_lack(comment)


@pytest.mark.parametrize(
    "comment", ["You left out the map.", "The phone number is missing.", "You did not mention the map."]
)
def test_complaints_of_a_lack_stay_omissions(comment: str) -> None:
    assert read_comment(comment, TOUR).omissions


@pytest.mark.parametrize(
    ("comment", "blamed"),
    [
        ("Do not mention the coat.", "coat"),
        ("Never announce the price.", "30 dollars"),
        ("Do not justify the late reply.", "late reply"),
        ("Instead of saying sorry, thank them for waiting.", "sorry"),
        ("An apology is not required.", "sorry"),
        ("No apology needed here.", "sorry"),
        ("Stop greeting everybody.", ""),
        ("No signature necessary.", ""),
        ("You don't have to list the sights.", ""),
    ],
)
def test_what_is_not_wanted_is_not_missing(comment: str, blamed: str) -> None:
    reading = read_comment(comment, TOUR)
    assert not reading.omissions
    assert all(span.label == "poor" and blamed in TOUR[span.start : span.end] for span in reading.spans)


@pytest.mark.parametrize(
    "comment",
    [
        "Instead of giving the price, it tells a joke.",
        "Rather than explaining the rule, the answer rambles.",
        "No changes needed.",
        "Is no greeting needed?",
        "Nobody needed this.",
    ],
)
def test_what_looks_like_a_needless_thing_is_none(comment: str) -> None:
    assert not is_needless(comment)


def test_patterns_are_fast_on_long_clauses() -> None:
    for word in ("no ", "glad that you ", "instead of being, ", "there is no "):
        assert not denies_lack(word * 2000)
        assert not is_needless("?" + word * 2000)
        welcomes_lack(word * 2000)


@pytest.mark.parametrize("comment", ["Never says where we meet.", "Never explains how to get there."])
def test_what_the_answer_never_says_is_missing(comment: str) -> None:
    assert read_comment(comment, TOUR).omissions
