import pytest

from text2grad.text.parts import Kind, cut, key, parts


def test_words_keep_their_place():
    text = "  A man,\nsadly died."
    assert [text[word.start : word.end] for word in cut(text)] == ["A", "man,", "sadly", "died."]


def test_a_full_stop_or_an_empty_line_ends_a_sentence():
    assert [word.sentence for word in cut('He "left." She stayed\n\nand on\nwe go')] == [0, 0, 1, 1, 2, 2, 2, 2]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("four-year-old", ("four", "year", "old")),
        ("max_count", ("max", "count")),
        ("maxCount", ("max", "count")),
        ("£1,200.", ("1,200",)),
        ("isn’t", ("isn't",)),
        ("—", ()),
    ],
)
def test_compounds_are_taken_apart(text, expected):
    assert parts(text) == expected


def test_words_that_say_the_same_share_a_key():
    assert key("strikes") == key("strike")
    assert key("six") == key("6")
    assert key("1,200") == key("1200")
    assert key("fourth") == key("four")
    assert key("strike") != key("string")


def test_kinds_follow_the_letters():
    kinds = [word.kind for word in cut("The 62-year-old Anna died in Lyon and sadly - was")]
    assert kinds == [
        Kind.ARTICLE,
        Kind.NUMBER,
        Kind.NAME,
        Kind.OTHER,
        Kind.PREPOSITION,
        Kind.NAME,
        Kind.CONJUNCTION,
        Kind.OTHER,
        Kind.MARK,
        Kind.AUXILIARY,
    ]


def test_a_capital_at_the_start_makes_no_name():
    assert cut("Tributes were paid")[0].kind is Kind.OTHER
