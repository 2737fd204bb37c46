"""Which words a request to remove something means."""

from __future__ import annotations

import time

import pytest

from text2grad.align.learned.removal_features import compute_features, describe_candidates
from text2grad.align.learned.removal_requests import parse_request
from text2grad.align.learned.removals import find_removals, list_candidates, score
from text2grad.align.weight_files import load_weights
from text2grad.text.whitespace import split_words

ANSWER = "Argentina winger Angel Di Maria has signed a four-year deal with the French club, his agent said in Paris."


def best(request: str, answer: str = ANSWER, source: str | None = None) -> str:
    removal = find_removals(request, answer, source)[0]
    return " ".join(word.text for word in split_words(answer)[removal.first : removal.last])


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ("in Paris", "in Paris."),
        ("Paris", "in Paris."),
        ("the location being Paris", "in Paris."),
        ("four-year", "four-year"),
        ("the deal being a four-year one", "four-year"),
        ("French", "French"),
    ],
)
def test_the_likeliest_words(request_: str, expected: str) -> None:
    assert best(request_) == expected


def test_probabilities_leave_room_for_none() -> None:
    removals = find_removals("Paris", ANSWER)
    assert 0 < sum(removal.probability for removal in removals) < 1
    assert removals == sorted(removals, key=lambda removal: -removal.probability)


def test_an_unknown_word_has_no_candidates() -> None:
    assert find_removals("Berlin", ANSWER) == []
    assert find_removals("", ANSWER) == []
    assert find_removals("Berlin", "") == []


def test_an_age_is_an_age() -> None:
    answer = "A 46-year-old man was arrested in Leeds."
    words = split_words(answer)
    found = {" ".join(word.text for word in words[a:b]) for a, b in list_candidates("his age", words)}
    assert "46-year-old" in found
    assert all("46-year-old" in run for run in found)


def test_a_request_has_a_head_and_what_it_is_said_of() -> None:
    asked = parse_request("Koeman's first name")
    assert "koeman" in asked.anchor
    assert "koeman" not in asked.head
    assert "first name" in asked.kinds
    assert "gold" in parse_request("the mine being a gold mine").head


def test_words_that_the_source_lacks_are_marked() -> None:
    words = split_words("The red barn burned.")
    (with_source,) = compute_features("red", words, [(1, 2)], "A barn burned down.")
    (without,) = compute_features("red", words, [(1, 2)], None)
    assert with_source["unsupported all"] == 1.0
    assert "unsupported all" not in without


def test_a_long_answer_takes_no_long_time() -> None:
    answer = " ".join([ANSWER] * 60)
    start = time.process_time()
    find_removals("the club being French", answer)
    find_removals("his age", answer)
    assert time.process_time() - start < 10


@pytest.mark.parametrize("source", [None, "A man was held in Leeds on Monday."])
@pytest.mark.parametrize(
    "request_", ["the age of the man", "46-year-old", "Leeds, on Monday", "the first name of Anna"]
)
def test_a_score_is_the_sum_of_the_weights_of_the_features(request_: str, source: str | None) -> None:
    words = split_words("Anna Berg saw a 46-year-old man in Leeds, on Monday. He was arrested, she said.")
    candidates = list_candidates(request_, words)
    scores = score(describe_candidates(request_, words, candidates, source))
    weights = load_weights("text2grad.align.learned", "removals")
    for found, features in zip(scores, compute_features(request_, words, candidates, source), strict=True):
        assert found == pytest.approx(sum(weights.get(name, 0.0) * value for name, value in features.items()))
