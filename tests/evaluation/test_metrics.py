"""SQuAD's metrics against values computed by hand."""

from __future__ import annotations

import pytest

from text2grad.evaluation.metrics import exact_match, token_f1


def test_token_f1_counts_words_without_articles_case_and_punctuation() -> None:
    assert token_f1("The Eiffel tower!", "eiffel Tower") == 1.0
    assert token_f1("in Paris, France", ["Paris", "Lyon"]) == pytest.approx(2 * 1 / (3 + 1))
    assert token_f1("Rome Rome", "Rome") == pytest.approx(2 * 1 / (2 + 1))
    assert token_f1("", "Paris") == 0.0
    assert token_f1("the", "a") == 1.0


def test_exact_match_needs_all_words_in_order() -> None:
    assert exact_match("the Red, Army", ["army red", "Red Army"]) == 1.0
    assert exact_match("army red", "Red Army") == 0.0
