from __future__ import annotations

import random
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from text2grad.align.quotes.quotes import Match, locate_quote, locate_quotes

REPORT = "The report, dated 3 May, was late.\nIt said that “sales” fell by 4.5% – a record.\nThe report was wrong."


def words(quote: str, text: str = REPORT) -> str | None:
    match = locate_quote(quote, text)
    return None if match is None else text[match.start : match.end]


def test_a_verbatim_quotation_is_certain() -> None:
    assert locate_quote("dated 3 May", REPORT) == Match(12, 23, "exact", 1.0)


@pytest.mark.parametrize(
    ("quote", "found"),
    [
        ("it SAID that", "It said that"),
        ("was late. It said", "was late.\nIt said"),
        ('that "sales" fell', "that “sales” fell"),
        ("that 'sales' fell", "that “sales” fell"),
        ("4.5% - a record", "4.5% – a record"),
        ("  The report dated 3 May!", "The report, dated 3 May"),
        ("“a record.”", "a record."),
        ("fell by 4. 5%", "fell by 4.5%"),
    ],
)
def test_spelling_differences_are_normalized(quote: str, found: str) -> None:
    match = locate_quote(quote, REPORT)
    assert match is not None
    assert REPORT[match.start : match.end] == found
    assert match.kind == "normalized"
    assert 0.9 <= match.confidence < 1


def test_text_that_lost_its_line_breaks() -> None:
    text = "40 would take it for free30 would pay 10$20 would pay 25$"
    assert (
        words("take it for free 30 would pay 10$ 20 would pay", text) == "take it for free30 would pay 10$20 would pay"
    )


def test_a_misquotation_is_fuzzy_and_less_sure() -> None:
    match = locate_quote("the report was very worng", REPORT)
    assert match is not None
    assert REPORT[match.start : match.end] == "The report was wrong"
    assert match.kind == "fuzzy"
    assert 0.6 < match.confidence < 0.9


@pytest.mark.parametrize(
    "quote",
    ["", "  ", "...", "the summary", "dated 4 May", "fell by 4.6%", "ANSWER1:", "profits rose sharply in every region"],
)
def test_what_is_not_there_is_not_found(quote: str) -> None:
    assert locate_quote(quote, REPORT) is None


def test_nothing_is_found_in_nothing() -> None:
    assert locate_quote("report", "") is None


class TestWords:
    def test_a_whole_word_is_preferred_to_a_part_of_one(self) -> None:
        assert locate_quote("art", "The party was modern art.") == Match(21, 24, "exact", 1.0)

    def test_even_in_another_case(self) -> None:
        assert locate_quote("Art", "Arthur makes art.") == Match(13, 16, "normalized", 0.98)

    def test_a_short_word_is_not_a_part_of_another(self) -> None:
        assert locate_quote("art", "The party is over.") is None
        assert locate_quote("12", "in 2012") is None
        assert locate_quote("1", "about 1.5 km") is None
        assert locate_quote("2012", "item 20123") is None

    def test_a_longer_one_may_be_but_without_much_confidence(self) -> None:
        assert locate_quote("report", "All reports are late.") == Match(4, 10, "exact", 0.6)

    def test_scripts_without_spaces_have_no_such_words(self) -> None:
        assert locate_quote("会议", "周五的会议取消了") == Match(3, 5, "exact", 1.0)
        assert locate_quote("금요일", "회의는 금요일에 있다") == Match(4, 7, "exact", 1.0)

    def test_accents_belong_to_their_letters(self) -> None:
        text = "un cafe\u0301 noir"
        assert locate_quote("cafe", text) == Match(3, 8, "normalized", 0.95)
        assert locate_quote("Café", text) == Match(3, 8, "normalized", 0.98)

    def test_code_points_are_counted_not_bytes(self) -> None:
        assert locate_quote("not on Friday", "🎉🎉 It is NOT on\u00a0Friday") == Match(9, 22, "normalized", 0.98)


class TestEllipses:
    def test_from_the_first_part_to_the_last(self) -> None:
        for ellipsis in ("...", " … ", " [...] ", ". . ."):
            assert words(f"the report{ellipsis}late") == "The report, dated 3 May, was late"

    def test_several_parts(self) -> None:
        assert words("It said ... fell ... record") == "It said that “sales” fell by 4.5% – a record"

    def test_the_tightest_range(self) -> None:
        assert words("the report ... wrong") == "The report was wrong"

    def test_the_parts_must_be_in_order_and_close(self) -> None:
        assert locate_quote("late ... dated", REPORT) is None
        assert locate_quote("start ... end", "The start." + " More." * 100 + " The end.") is None

    def test_an_ellipsis_of_the_text_itself(self) -> None:
        assert words("wait... what", "Please wait . . . what is it?") == "wait . . . what"


class TestSeveralOccurrences:
    text = "It rains. When the fight or flight response starts, it helps. It stops, and then it ends."
    starts = (0, 52, 62, 81)

    def test_the_same_case_first_and_the_doubt_is_shown(self) -> None:
        assert locate_quote("It", self.text) == Match(0, 2, "exact", 0.5)

    @pytest.mark.parametrize(
        ("context", "start"),
        [
            ('"It" comes after the flight response', 52),
            ('the second "it"', 52),
            ('"it", third mention', 62),
            ('The answer repeats "it" at the end', 81),
            ('the last "it" and the first "and"', 81),
        ],
    )
    def test_by_what_the_critique_says_around_it(self, context: str, start: int) -> None:
        match = locate_quote("it", self.text, context=context)
        assert match is not None
        assert match.start == start
        assert match.confidence > 0.9

    def test_a_context_that_tells_nothing_changes_nothing(self) -> None:
        assert locate_quote("It", self.text, context='I do not see what "It" means.') == Match(0, 2, "exact", 0.5)


class TestSeveralQuotations:
    text = "the cat saw the dog. The cat ran. A bird saw the cat."

    def starts(self, *quotes: str) -> list[int | None]:
        return [match and match.start for match in locate_quotes(quotes, self.text)]

    def test_no_occurrence_is_used_twice_while_another_is_free(self) -> None:
        assert self.starts("cat", "cat", "cat") == [4, 25, 49]
        assert self.starts("the cat", "the cat", "the cat") == [0, 21, 45]

    def test_but_it_is_when_none_is_free(self) -> None:
        assert self.starts("dog", "dog") == [16, 16]

    def test_the_nearest_after_the_previous_quotation(self) -> None:
        assert self.starts("ran", "cat") == [29, 49]
        assert self.starts("cat", "ran", "cat") == [4, 29, 49]

    def test_not_one_that_overlaps_another_quotation(self) -> None:
        assert self.starts("the cat", "cat ran") == [0, 25]
        assert self.starts("cat", "cat saw the dog") == [25, 4]

    def test_what_is_not_found_leaves_its_place(self) -> None:
        assert self.starts("mouse", "dog", "unicorn") == [None, 16, None]
        assert locate_quotes([], self.text) == []

    def test_order_decides_and_is_sure_of_it(self) -> None:
        ran, cat = locate_quotes(["ran", "cat"], self.text)
        assert ran == Match(29, 32, "exact", 1.0)
        assert cat == Match(49, 52, "exact", 1.0)

    def test_contexts_belong_to_their_quotations(self) -> None:
        first, second = locate_quotes(["cat", "saw"], self.text, contexts=['the last "cat"', 'the second "saw"'])
        assert first is not None
        assert second is not None
        assert (first.start, second.start) == (49, 41)

    def test_many_occurrences_stay_fast_and_ordered(self) -> None:
        text = "word " * 5000
        assert [match and match.start for match in locate_quotes(["word"] * 10, text)] == list(range(0, 50, 5))


texts = st.text(st.sampled_from("abc éÉß.,'“-\n 1ﬁ会👍"), min_size=1, max_size=60)


@st.composite
def text_and_part(draw: st.DrawFn) -> tuple[str, str]:
    text = draw(texts)
    start = draw(st.integers(0, len(text) - 1))
    return text, text[start : draw(st.integers(start + 1, len(text)))]


@given(text_and_part())
def test_every_part_is_found_verbatim_but_bits_of_words_and_numbers(pair: tuple[str, str]) -> None:
    text, part = pair
    match = locate_quote(part, text)
    if match is not None and match.kind == "exact":
        assert text[match.start : match.end] == part.strip()
    elif len(part.strip()) >= 4 and not part.strip().isdigit():
        assert match is not None
        assert match.kind == "normalized"  # only where whole words in another case outweigh a part of a word


word = st.text(string.ascii_letters, min_size=1, max_size=8)


@given(st.lists(word, min_size=1, max_size=30), st.data())
def test_case_white_space_and_marks_do_not_matter(parts: list[str], data: st.DataObject) -> None:
    text = " ‘".join(parts)
    first = data.draw(st.integers(0, len(parts) - 1))
    last = data.draw(st.integers(first + 1, len(parts)))
    start = sum(len(part) + 2 for part in parts[:first])
    end = start + len(" ‘".join(parts[first:last]))

    variant = "\n\n“".join(data.draw(st.sampled_from([str.upper, str.lower, str.title]))(p) for p in parts[first:last])
    match = locate_quote(variant, text)

    assert match is not None
    assert text[match.start : match.end].lower() == text[start:end].lower()
    quote, lowered = text[start:end].lower(), text.lower()
    if lowered.find(quote) == lowered.rfind(quote):  # occurrences may overlap, which str.count() does not see
        assert (match.start, match.end) == (start, end)


@given(st.text(max_size=40), st.text(max_size=80), st.floats(0.3, 1))
def test_ranges_are_inside_the_text(quote: str, text: str, threshold: float) -> None:
    match = locate_quote(quote, text, threshold=threshold)
    if match is not None:
        assert 0 <= match.start < match.end <= len(text)
        assert 0 < match.confidence <= 1
        assert match.kind != "exact" or text[match.start : match.end] == quote.strip()


def test_unrelated_text_is_not_matched() -> None:
    letters = random.Random(0)

    def prose(alphabet: str, words: int) -> str:
        return " ".join("".join(letters.choices(alphabet, k=letters.randint(3, 9))) for _ in range(words))

    for size in range(1, 60):
        assert locate_quote(prose("aeioubcdfg", size), prose("aeioubcdfg", 300)) is None
