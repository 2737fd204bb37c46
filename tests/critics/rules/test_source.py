import pytest

from text2grad.critics.rules.source import Source
from text2grad.text.words import parse_text

SOURCE = Source(
    parse_text(
        "The schoolyard in Morocco was flooded; 12,600 litres were pumped out. NASA and the World Health Organization "
        "of the United Nations announced an investment of €6.4 million."
    )
)


@pytest.mark.parametrize(
    "word", ["flooding", "school", "announcement", "invested", "new", "people", "investor", "pump"]
)
def test_supported_words(word):
    assert SOURCE.supports_word(parse_text(word).words[0])


@pytest.mark.parametrize("word", ["drought", "church", "discusses", "celebrated"])
def test_unsupported_words(word):
    assert not SOURCE.supports_word(parse_text(word).words[0])


@pytest.mark.parametrize(
    ("name", "supported"),
    [
        ("World Health Organization", [True, True, True]),
        ("WHO", [True]),
        ("W.H.O.", [True]),
        ("National Aeronautics and Space Administration", [True] * 5),
        ("Moroccan", [True]),
        ("Spanish", [False]),
        ("United Kingdom", [True, False]),
        ("UNESCO", [False]),
    ],
)
def test_names(name, supported):
    assert SOURCE.supports_name(parse_text(name).words) == supported


@pytest.mark.parametrize(
    ("phrase", "supported"),
    [
        ("12600", True),
        ("$6,400,000", True),
        ("6.4", False),
        ("12,000", False),
        ("about 12,000", True),
        ("about 10,000", False),
        ("the first", True),
    ],
)
def test_numbers(phrase, supported):
    *before, number = parse_text(phrase).words
    assert SOURCE.supports_number(number, before[-1] if before else None) is supported
