from importlib.resources import files
from itertools import pairwise

import numpy as np
import pytest

from text2grad.align.learned.aligner import (
    locate,
    locate_words,
    parse_model,
    predict_word_probabilities,
    select_words,
    source_or_none,
    stack_neighbours,
)
from text2grad.align.learned.word_features import compute_word_features
from text2grad.align.weight_files import load_weights
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
    return [completion[start:end] for (start, end), _ in locate(comment, completion, prompt, **more)]


def test_a_comment_that_quotes_nothing_finds_its_words():
    (((start, end), confidence),) = locate("The source does not say that this is the fourth day of strikes.", STRIKES)
    assert "fourth day" in STRIKES[start:end]
    assert end - start < len(STRIKES) / 2
    assert 0.3 < confidence < 1


def test_a_hint_moves_the_words_that_it_is_about():
    comment = "The fourth day of strikes is made up."
    role = (STRIKES.index("role"), STRIKES.index("role") + len("role"))
    assert "role" not in "".join(STRIKES[slice(*place)] for place, _ in locate_words(comment, STRIKES))
    hinted = locate_words(comment, STRIKES, hints=[(role, 9.0)])
    assert any("role" in STRIKES[slice(*place)] for place, _ in hinted)


def test_confidence_is_interpolated_between_the_knots_of_the_calibration():
    data = load_weights("text2grad.align.learned", "words")
    model = parse_model(data | {"calibration": [[0.2, 0.6], [0.1, 0.9]]})
    assert [model.calibrate(p) for p in (0.1, 0.2, 0.4, 0.9)] == pytest.approx([0.1, 0.1, 0.5, 0.9])


@pytest.mark.parametrize("code", [FACTORIAL, DIGITS, f"Here it is:\n```python\n{FACTORIAL}```\nIt is recursive."])
@pytest.mark.parametrize("comment", ["The code fails to handle negative inputs.", "fails to handle negative inputs"])
def test_a_program_and_what_it_fails_to_do(code, comment):
    pieces = found(comment, code)
    assert 0 < len("".join(pieces)) < 0.7 * len(code)
    assert any("n" in piece for piece in pieces)


def test_prose_that_parses_is_no_program():
    assert found("It is not Paris.", "Paris") in ([], ["Paris"])


@pytest.mark.parametrize(("comment", "answer"), [("", "The sky."), ("Wrong.", ""), ("", ""), ("Wrong.", " \n ")])
def test_empty_texts_have_no_spans(comment, answer):
    assert locate(comment, answer) == []


def test_an_unrelated_comment_finds_nothing():
    assert locate("The cricket match in Karachi was cancelled by Zimbabwe.", STRIKES) == []


def test_spans_are_in_order_apart_and_without_punctuation_at_their_ends():
    answer = '"David Cameron" is meeting the French President, François Hollande, in Berlin.'
    places = [place for place, _ in locate("It makes up David Cameron and Berlin.", answer)]
    assert all(one[1] < other[0] for one, other in pairwise(places))
    assert all(answer[start].isalnum() and answer[end - 1].isalnum() for start, end in places)


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
        locate("Not the fourth day.", STRIKES, scorer=FixedScorer(48))


@pytest.mark.parametrize("name", ["words", "heads", "statements"])
def test_weights_are_small_and_fit_the_features(name):
    assert len(files("text2grad.align.learned").joinpath(f"weights/{name}.json.gz").read_bytes()) < 200_000
    data = load_weights("text2grad.align.learned", name)
    assert 0 < data["threshold"] < 1
    assert 0 <= data["gate"] < 1
    assert data["calibration"][0] == sorted(data["calibration"][0])
    assert data["calibration"][1] == sorted(data["calibration"][1])
    if name != "statements":
        names = [column for column in data["trees"]["columns"] if not column.startswith("heads[")]
        assert names == compute_word_features("a", "b", "c")[1]


def test_a_source_is_one_wherever_it_has_the_words():
    far = "zzz " * 1000 + "Commuters are facing a fourth day of strike action"
    assert source_or_none(far, STRIKES) == far
    assert source_or_none("Write poems.", STRIKES) is None
    assert source_or_none(None, STRIKES) is None
    assert source_or_none("x" * 498 + " a" + "b" * 500, "a " * 9) is None  # no word "a", only one that is cut there
