"""Prose has a word order that shuffled words and lists have not."""

import random

import pytest

from text2grad.critics.rules.word_order import ends_sentence, sentence_order, transitions, word_class
from text2grad.data import summaries
from text2grad.text.words import parse_text


def order(string: str) -> float:
    text = parse_text(string)
    return sentence_order(text, text.sentences[0])


def test_transitions_run_from_the_begin_to_the_end_of_a_sentence():
    text = parse_text("In Rome, they sing.")

    assert [(t.word, t.first, t.second) for t in transitions(text, text.sentences[0])] == [
        (0, "<begin>", "in"),
        (0, "in", "<name>"),
        (1, "<name>", ","),
        (1, ",", "they"),
        (2, "they", "<other>"),
        (3, "<other>", "<end>"),
    ]


@pytest.mark.parametrize(
    ("word", "expected"),
    [("the", "the"), ("40", "<number>"), ("sold", "-ed"), ("opened", "-ed"), ("bakeries", "-s"), ("ferry", "<other>")],
)
def test_classes(word, expected):
    assert word_class(parse_text(f"it {word}").words[1]) == expected


def test_shuffled_references_are_told_from_references():
    rng = random.Random(0)
    references = [str(example.reference).rstrip(".") for example in summaries.load("heldout")]
    shuffled = [" ".join(rng.sample(words, len(words))) for words in map(str.split, references)]

    assert sum(order(a) > order(b) for a, b in zip(references, shuffled, strict=True)) >= 0.95 * len(references)


def test_no_sentence_ends_in_an_article():
    for string, may_end in [("They went to the.", False), ("They went to Rome.", True), ("They sang of.", False)]:
        text = parse_text(string)
        assert ends_sentence(text, text.sentences[0]) is may_end
