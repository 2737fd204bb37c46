import json
from importlib.resources import files
from itertools import pairwise

import numpy as np
import pytest

from text2grad.align.learned.aligner import align_comment, predict_word_probabilities, select_words, stack_neighbours
from text2grad.align.learned.word_features import compute_word_features
from text2grad.errors import UserError

STRIKES = "Commuters are facing a fourth day of strike action by rail workers in a dispute over the role of conductors."
FACTORIAL = "def factorial(n):\n    result = 1\n    for i in range(1, n + 1):\n        result *= i\n    return result\n"
DIGITS = "def digits(n):\n    return [int(c) for c in str(n)]\n"


class FixedScorer:
    """A scorer that returns the same features for every word, `columns` of them."""

    def __init__(self, columns):
        self.columns = columns

    def score_words(self, comment, completion, prompt, words):
        return None if self.columns is None else np.zeros((len(words), self.columns), np.float32)


def found(comment, completion, prompt=None, **more):
    return [completion[span.start : span.end] for span in align_comment(comment, completion, prompt, **more)]


def test_a_comment_that_quotes_nothing_finds_its_words():
    (span,) = align_comment("The source does not say that this is the fourth day of strikes.", STRIKES, critic="anna")
    assert "fourth day" in STRIKES[span.start : span.end]
    assert span.end - span.start < len(STRIKES) / 2
    assert (span.label, span.match, span.critic) == ("poor", "freeform", "anna")
    assert 0.3 < span.confidence < 1


def test_a_topic_finds_a_word_that_the_comment_does_not_have():
    assert found("The age is invented.", "A 62-year-old woman died after surgery.", "A woman died after surgery.") == [
        "62-year-old"
    ]


def test_praise_is_good_and_a_label_overrides_it():
    comment, answer = "Great explanation of how the heart pumps blood.", "It beats. The heart pumps blood. You sleep."
    assert {span.label for span in align_comment(comment, answer)} == {"good"}
    assert {span.label for span in align_comment(comment, answer, label="poor")} == {"poor"}


def test_the_phrase_is_what_the_comment_says_of_it():
    comment = "Fine otherwise. But the fourth day of strikes is made up."
    (span,) = align_comment(comment, STRIKES)
    assert comment[slice(*span.phrase)] in ("fourth day", "fourth day of strikes")


@pytest.mark.parametrize("code", [FACTORIAL, DIGITS, f"Here it is:\n```python\n{FACTORIAL}```\nIt is recursive."])
@pytest.mark.parametrize("comment", ["The code fails to handle negative inputs.", "fails to handle negative inputs"])
def test_a_program_and_what_it_fails_to_do(code, comment):
    pieces = found(comment, code)
    assert 0 < len("".join(pieces)) < 0.7 * len(code)
    assert any("n" in piece for piece in pieces)


def test_what_a_comment_names_in_a_program_counts_first():
    assert [span.match for span in align_comment("The loop is wrong.", FACTORIAL)] == ["code"]


def test_prose_that_parses_is_no_program():
    assert [span.match for span in align_comment("It is not Paris.", "Paris")] in ([], ["freeform"])


@pytest.mark.parametrize(("comment", "answer"), [("", "The sky."), ("Wrong.", ""), ("", ""), ("Wrong.", " \n ")])
def test_empty_texts_have_no_spans(comment, answer):
    assert align_comment(comment, answer) == []


def test_an_unrelated_comment_finds_nothing():
    assert align_comment("The cricket match in Karachi was cancelled by Zimbabwe.", STRIKES) == []


def test_spans_are_in_order_apart_and_without_punctuation_at_their_ends():
    answer = '"David Cameron" is meeting the French President, François Hollande, in Berlin.'
    spans = align_comment("It makes up David Cameron and Berlin.", answer)
    assert all(one.end < other.start for one, other in pairwise(spans))
    assert all(answer[span.start].isalnum() and answer[span.end - 1].isalnum() for span in spans)


def test_gaps_that_are_almost_probable_enough_are_closed():
    probabilities = np.array([0.9, 0.35, 0.9, 0.1, 0.9, 0.35, 0.35])
    assert select_words(probabilities, 0.4).tolist() == [True, True, True, False, True, False, False]


def test_neighbours_of_a_score():
    assert stack_neighbours(np.array([1.0, 2.0], np.float32)).tolist() == [[-6, -6, 1, 2, -6], [-6, 1, 2, -6, -6]]


def test_a_text_too_long_for_the_scorer_uses_spelling_alone():
    _, alone = predict_word_probabilities("Not the fourth day.", STRIKES)
    _, unread = predict_word_probabilities("Not the fourth day.", STRIKES, scorer=FixedScorer(None))
    assert unread.tolist() == alone.tolist()


def test_a_scorer_changes_the_probabilities():
    _, alone = predict_word_probabilities("Not the fourth day.", STRIKES)
    _, together = predict_word_probabilities("Not the fourth day.", STRIKES, scorer=FixedScorer(30 * 9 * 6))
    assert together.tolist() != alone.tolist()


def test_a_model_other_than_the_default_is_rejected():
    with pytest.raises(UserError, match="smollm2"):
        align_comment("Not the fourth day.", STRIKES, scorer=FixedScorer(48))


@pytest.mark.parametrize("name", ["words", "heads", "statements"])
def test_weights_are_small_and_fit_the_features(name):
    text = files("text2grad.align.learned").joinpath(f"weights/{name}.json").read_text("utf-8")
    data = json.loads(text)
    assert len(text) < 1_000_000
    assert 0 < data["threshold"] < 1
    if name != "statements":
        names = [column for column in data["trees"]["columns"] if not column.startswith("heads[")]
        assert names == compute_word_features("a", "b", "c")[1]
