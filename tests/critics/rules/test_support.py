"""Risks of words: unsupported names and numbers, words in another connection, and what only looks unsupported."""

import pytest

from text2grad.critics.rules.source import Source
from text2grad.critics.rules.support import (
    FEATURES,
    assess_support,
    combined_risk,
    support_features,
    support_weights,
    unsupported_words,
)
from text2grad.text.words import parse_text

SOURCE = Source(
    parse_text(
        "Marta Lindgren opened a bakery in Falun on Saturday and sold 1,200 loaves. Her sister Ida runs the ferry to "
        "Lisbon, which carries 40 people. The WHO praised both of them."
    )
)


def unsupported(summary: str) -> list[str]:
    text = parse_text(summary)
    return [text.words[i].text for i in sorted(unsupported_words(text, SOURCE))]


def risks(summary: str) -> dict[str, float]:
    text = parse_text(summary)
    return {
        text.words[i].text: risk
        for sentence in assess_support(text, SOURCE)
        for i, risk in zip(sentence.words, sentence.risks, strict=True)
    }


def risk(summary: str) -> float:
    (sentence,) = assess_support(parse_text(summary), SOURCE)
    return sentence.risk


def test_numbers_names_and_words_that_the_source_does_not_have():
    assert unsupported("Anna Lindgren sold 1,500 cakes in Falun.") == ["Anna", "1,500", "cakes"]


def test_inflections_expansions_and_counts_are_supported():
    assert unsupported("Two sisters were praised by the World Health Organization.") == []
    assert unsupported("The 2 sisters sold it.") == ["2"]


def test_each_word_has_a_value_per_feature():
    summary = parse_text("Marta sold it. Then Ida ran the ferry.")
    rows = support_features(summary, SOURCE)

    assert [len(sentence) for sentence in rows] == [3, 5]
    assert {len(row) for sentence in rows for row in sentence} == {len(FEATURES)}
    assert rows[0][0][FEATURES.index("content")] == 1.0


def test_a_word_in_another_connection_is_riskier_than_in_its_own():
    own = "Marta Lindgren opened a bakery in Falun on Saturday."
    other = "Marta Lindgren opened a ferry in Falun on Saturday."

    assert risks(other)["ferry"] > risks(own)["bakery"]
    assert risk(other) > risk(own)


def test_one_more_invention_raises_the_risk_of_the_sentence():
    summary = "Marta Lindgren sold 1,200 loaves in Falun."

    assert risk(summary) < risk(summary.replace("1,200", "1,500")) < risk("Anna Olsson sold 1,500 loaves in Malmö.")


def test_the_combined_risk_lies_between_mean_and_maximum():
    assert combined_risk([0.2, 0.2]) == pytest.approx(0.2)
    assert 0.3 < combined_risk([0.1, 0.5]) < 0.5
    assert combined_risk([0.0, 0.8]) == pytest.approx((0.8**3 / 2) ** (1 / 3))


def test_the_shipped_weights_are_those_of_the_features():
    assert len(support_weights().weights) == len(FEATURES)
    assert 0 < support_weights().threshold < 1
