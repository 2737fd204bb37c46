"""SQuAD's metrics against values computed by hand."""

from __future__ import annotations

import sys

import pytest

from text2grad.errors import UserError
from text2grad.evaluation.metrics import exact_match, sentence_bleu, token_f1


def test_token_f1_counts_words_without_articles_case_and_punctuation() -> None:
    assert token_f1("The Eiffel tower!", "eiffel Tower") == 1.0
    assert token_f1("in Paris, France", ["Paris", "Lyon"]) == pytest.approx(2 * 1 / (3 + 1))
    assert token_f1("Rome Rome", "Rome") == pytest.approx(2 * 1 / (2 + 1))
    assert token_f1("", "Paris") == 0.0
    assert token_f1("the", "a") == 1.0


def test_exact_match_needs_all_words_in_order() -> None:
    assert exact_match("the Red, Army", ["army red", "Red Army"]) == 1.0
    assert exact_match("army red", "Red Army") == 0.0


def test_bleu_is_that_of_sacrebleu_and_the_best_reference_counts() -> None:
    pytest.importorskip("sacrebleu")
    assert sentence_bleu("the cat sat on the mat", "the cat sat on the mat") == pytest.approx(100)
    assert sentence_bleu("the cat sat on the mat", ["a dog", "the cat sat on the mat"]) == pytest.approx(100)
    # precisions 5/6, 3/5, 1/4 and, without a match, half of 1/3: the geometric mean
    expected = 100 * (5 / 6 * 3 / 5 * 1 / 4 * 1 / 2 / 3) ** 0.25
    assert sentence_bleu("the cat sat on the mat", "the cat slept on the mat") == pytest.approx(expected)


def test_without_sacrebleu_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(UserError, match=r"pip install \"text2grad\[eval\]\""):
        sentence_bleu("a", "a")
