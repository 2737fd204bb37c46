"""The factors of a summary's score, by arithmetic that can be redone."""

import math

import pytest

from text2grad.critics.rules import quality
from text2grad.critics.rules.source import Source
from text2grad.critics.rules.support import SentenceSupport
from text2grad.text.words import parse_text

TEN_WORDS = parse_text("One two three four five six seven eight nine ten.")


def test_faithfulness_is_between_the_average_and_the_worst_sentence():
    sentences = [SentenceSupport(range(6), (), 0.1), SentenceSupport(range(6, 8), (), 0.5)]

    assert quality.faithfulness(sentences) == pytest.approx(1 - (0.2 + 0.5) / 2)


def test_informativeness_counts_each_word_of_the_source_once_and_facts_thrice():
    source = Source(parse_text("The ferry to Lisbon takes boats."))
    summary = parse_text("A ferry, a ferry and boats on the moon.")

    assert quality.informativeness(summary, source, set(), num_facts=0) == pytest.approx(1 - math.exp(-2 / 4))
    assert quality.informativeness(summary, source, set(), num_facts=1) == pytest.approx(1 - math.exp(-4 / 4))
    assert quality.informativeness(summary, source, set(range(9)), num_facts=0) == 0


def test_a_usual_share_of_copied_words_costs_nothing_and_a_copy_nearly_all():
    assert quality.originality(TEN_WORDS, [range(8)]) == 1
    assert quality.originality(TEN_WORDS, [range(9)]) == pytest.approx(1 - 0.9 * 2 / 3)
    assert quality.originality(TEN_WORDS, [range(4), range(4, 10)]) == pytest.approx(0.1)


def test_conciseness_falls_with_the_square_of_the_length():
    assert quality.conciseness(TEN_WORDS, limit=10) == 1
    assert quality.conciseness(TEN_WORDS, limit=5) == 0.25


def test_a_text_that_repeats_half_of_itself_is_worth_nothing():
    assert quality.freshness(TEN_WORDS, {0, 1}) == pytest.approx(0.6)
    assert quality.freshness(TEN_WORDS, set(range(5))) == 0
