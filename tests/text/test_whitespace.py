import pytest

from text2grad.text.whitespace import WordKind, part_key, split_keys, split_parts, split_words


def test_words_keep_their_offsets():
    text = "  A man,\nsadly died."
    assert [text[word.start : word.end] for word in split_words(text)] == ["A", "man,", "sadly", "died."]


def test_a_full_stop_or_an_empty_line_ends_a_sentence():
    assert [word.sentence for word in split_words('He "left." She stayed\n\nand on\nwe go')] == [0, 0, 1, 1, 2, 2, 2, 2]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("four-year-old", ("four", "year", "old")),
        ("max_count", ("max", "count")),
        ("maxCount", ("max", "count")),
        ("£1,200.", ("1,200",)),
        ("isn’t", ("isn't",)),
        ("—", ()),
        ("(Dogs),", ("dogs",)),
        ("I'd", ("i'd",)),
        ("'tis", ("tis",)),
        ("dogs'", ("dogs",)),
        ("iPhone", ("i", "phone")),
        ("A", ("a",)),
    ],
)
def test_compounds_are_split(text, expected):
    assert split_parts(text) == expected


def test_inflections_and_number_spellings_share_a_key():
    assert part_key("strikes") == part_key("strike")
    assert part_key("six") == part_key("6")
    assert part_key("1,200") == part_key("1200")
    assert part_key("fourth") == part_key("four")
    assert part_key("strike") != part_key("string")


def test_kinds_follow_the_spelling():
    kinds = [word.kind for word in split_words("The 62-year-old Anna died in Lyon and sadly - was")]
    assert kinds == [
        WordKind.ARTICLE,
        WordKind.NUMBER,
        WordKind.NAME,
        WordKind.OTHER,
        WordKind.PREPOSITION,
        WordKind.NAME,
        WordKind.CONJUNCTION,
        WordKind.OTHER,
        WordKind.PUNCTUATION,
        WordKind.AUXILIARY,
    ]


def test_a_capital_at_the_start_makes_no_name():
    assert split_words("Tributes were paid")[0].kind is WordKind.OTHER


def test_parts_and_keys_of_a_text_are_those_of_its_words():
    text = "In  20 March\n1,200 people’s “maxCount”—six-year-old —\u00a0left."
    assert split_parts(text) == tuple(part for word in split_words(text) for part in word.parts)
    assert split_keys(text) == tuple(key for word in split_words(text) for key in word.keys)


def test_spaces_alone_end_no_sentence():
    assert [word.sentence for word in split_words("one  two\n three \n \n four")] == [0, 0, 0, 1]
