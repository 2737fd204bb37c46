"""The critique format: formatting and parsing are inverse, and items over their limit are omitted whole."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from reward_support import ANSWERS

from text2grad.reward_model.critique_format import (
    EMPTY_CRITIQUE,
    CritiqueFormat,
    CritiqueFormatError,
    CritiqueLimits,
    Order,
    WrittenCritique,
    expand_to_chunks,
    find_occurrences,
    format_critique,
    parse_critique,
    shorten_prose,
)
from text2grad.rollout.grammar import QUOTE_CHUNK
from text2grad.schema import Feedback, Omission, Range, Span

ROOMY = CritiqueLimits(reasoning=1000, critique=1000, quote=10_000, spans=50, omissions=50, omission=1000)
ORDERS: list[Order] = ["critique_first", "spans_first", "spans_only"]
PARTS = [
    '"',
    "\\",
    "\n",
    "\t",
    " ",
    "the man",
    "man",
    "woman",
    ".",
    "; ",
    "#2",
    "none",
    "🎉",
    "👩‍👩‍👧",
    "東京",
    "e\u0301",
    "\x07",
    "\u2028",
]
TEXTS = st.text(max_size=40) | st.lists(st.sampled_from(PARTS), max_size=25).map("".join) | st.sampled_from(ANSWERS)


@st.composite
def criticised(draw: Any) -> tuple[str, Feedback]:
    """An answer with random spans, prose and omissions."""
    answer = draw(TEXTS.filter(bool))
    spans = []
    for _ in range(draw(st.integers(0, 8))):
        start = draw(st.integers(0, len(answer) - 1))
        end = draw(st.integers(start + 1, len(answer)))
        severity = draw(st.sampled_from([0.2, 0.5, 1.0]))
        label = draw(st.sampled_from(["good", "poor"]))
        replacement = draw(st.none() | TEXTS) if label == "poor" else None
        spans.append(Span(start=start, end=end, label=label, severity=severity, replacement=replacement))
    omissions = [Omission(text=draw(TEXTS)) for _ in range(draw(st.integers(0, 3)))]
    return answer, Feedback(
        critic="c", critique=draw(TEXTS), reasoning=draw(st.none() | TEXTS), spans=spans, omissions=omissions
    )


def feedback(*spans: tuple[int, int, str] | tuple[int, int, str, float], **fields: Any) -> Feedback:
    given = [dict(zip(("start", "end", "label", "severity"), span, strict=False)) for span in spans]
    return Feedback.model_validate({"critic": "c", "spans": given, **fields})


def test_replacements_follow_their_quotations() -> None:
    answer = "We meet on Friday, the man said. The man."
    spans = [
        Span(start=11, end=17, label="poor", replacement="Monday"),
        Span(start=19, end=26, label="poor", replacement=""),
        Span(start=36, end=39, label="poor", replacement="one\nof two"),
    ]
    said = Feedback(critic="c", spans=spans)
    text = format_critique(said, answer, CritiqueFormat(order="spans_only"))
    assert text == 'Good: none\nPoor: "Friday" -> "Monday"; "the man" -> ""; "man"#2\nMissing: none'
    parsed = parse_critique(text, answer)
    assert parsed.poor == [(11, 17), (19, 26), (37, 40)]
    assert parsed.replacements == {(11, 17): "Monday", (19, 26): ""}


def test_a_replacement_is_widened_with_its_span() -> None:
    answer = "It was unkind."
    said = Feedback(critic="c", spans=[Span(start=7, end=9, label="poor", replacement="very ")])
    text = format_critique(said, answer, CritiqueFormat(order="spans_only"))
    assert 'Poor: "unkind" -> "very kind"' in text


def test_replacements_over_the_limit_are_left_out() -> None:
    said = Feedback(critic="c", spans=[Span(start=0, end=2, label="poor", replacement="far too long")])
    for limit in (0, 11):
        layout = CritiqueFormat(order="spans_only", limits=CritiqueLimits(replacement=limit))
        assert 'Poor: "It"\n' in format_critique(said, "It was.", layout)


def test_format_critique() -> None:
    answer = 'The man came on Friday.\nThe man said "yes".'
    said = feedback(
        (13, 22, "poor"),
        (28, 31, "poor"),
        (37, 42, "good"),
        critique="The source does  not\nname a day.",
        omissions=[Omission(text='the "deadline"')],
    )
    spans = 'Good: "\\"yes\\""\nPoor: "on Friday"; "man"#2\nMissing: "the \\"deadline\\""'
    critique = "Critique: The source does not name a day."
    assert (
        format_critique(said, answer, CritiqueFormat(order="critique_first", limits=CritiqueLimits()))
        == f"{critique}\n{spans}"
    )
    assert (
        format_critique(said, answer, CritiqueFormat(order="spans_first", limits=CritiqueLimits()))
        == f"{spans}\n{critique}"
    )
    assert format_critique(said, answer, CritiqueFormat(order="spans_only", limits=CritiqueLimits())) == spans
    reasoned = format_critique(
        said, answer, CritiqueFormat(order="critique_first", limits=CritiqueLimits(reasoning=50))
    )
    assert reasoned == f"Reasoning: {EMPTY_CRITIQUE}\n{critique}\n{spans}"


def test_format_critique_of_empty_feedback() -> None:
    assert format_critique(feedback(), "Yes.", CritiqueFormat(order="critique_first", limits=CritiqueLimits())) == (
        "Critique: Nothing stands out.\nGood: none\nPoor: none\nMissing: none"
    )


def test_parse_critique() -> None:
    text = 'Critique: Good: it is bad.\nGood: none\nPoor: "a"#2; "b\\n"\nMissing: "c \\"d\\""; "e"'
    assert parse_critique(text, "a b\n a") == WrittenCritique(
        "Good: it is bad.", None, [], [(5, 6), (2, 4)], ['c "d"', "e"]
    )


def test_a_number_beyond_the_last_occurrence_refers_to_the_last() -> None:
    assert parse_critique('Good: "a"#9\nPoor: none\nMissing: none', "a b a").good == [(4, 5)]


def test_the_same_quotation_twice_is_one_range() -> None:
    assert parse_critique('Good: none\nPoor: "a"; "a"#1; "b"\nMissing: none', "a b").poor == [(0, 1), (2, 3)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Critique: It is cut o",
        "Critique: No.\nGood: none\nPoor: none",
        'Good: none\nPoor: "a"; "cat"\nMissing: none',
        'Good: none\nPoor: ""\nMissing: none',
        "Good: none\nPoor: a\nMissing: none",
        'Good: none\nPoor: "a" "b"\nMissing: none',
        'Good: none\nPoor: "a";\nMissing: none',
        'Good: none\nPoor: "a"; \nMissing: none',
        'Good: none\nPoor: "a"#0\nMissing: none',
        'Good: none\nPoor: "a\nMissing: none',
        'Good: none\nPoor: "\\q"\nMissing: none',
        'Good: none\nPoor: "\x01"\nMissing: none',
        "Good: none\nPoor: none\nMissing: something",
    ],
)
def test_text_in_another_format_is_rejected(text: str) -> None:
    with pytest.raises(CritiqueFormatError):
        parse_critique(text, "a b \x01")


def test_occurrences_may_overlap() -> None:
    assert find_occurrences("aa", "aaaa b aa") == [0, 1, 2, 7]
    assert find_occurrences(".", "a.b.") == [1, 3]


@given(TEXTS)
def test_chunks_tile_the_text(text: str) -> None:
    assert "".join(QUOTE_CHUNK.findall(text)) == text


def test_chunks_are_words_spaces_and_marks() -> None:
    text = "x_1 isn't  東京\"" + "w" * 50
    assert QUOTE_CHUNK.findall(text) == ["x_1", " ", "isn", "'", "t", " ", " ", "東", "京", '"', "w" * 40, "w" * 10]


@pytest.mark.parametrize(
    ("span", "whole"),
    [
        ((0, 3), (0, 3)),
        ((1, 2), (0, 3)),
        ((2, 5), (0, 7)),
        ((3, 4), None),
        ((3, 5), (4, 7)),
        ((4, 8), (4, 8)),
        ((0, 9), (0, 8)),
    ],
)
def test_a_span_is_widened_to_whole_chunks(span: Range, whole: Range | None) -> None:
    assert expand_to_chunks(span, "the fox.\n") == whole


@given(criticised(), st.sampled_from(ORDERS))
@example(("a a", feedback((2, 3, "poor"))), "spans_only")
@example(("woman man", feedback((6, 9, "poor"))), "spans_only")
def test_parsing_returns_every_span_widened_to_chunks(given: tuple[str, Feedback], order: Order) -> None:
    answer, said = given
    parsed = parse_critique(format_critique(said, answer, CritiqueFormat(order=order, limits=ROOMY)), answer)
    for label, ranges in (("good", parsed.good), ("poor", parsed.poor)):
        wanted = {expand_to_chunks((s.start, s.end), answer) for s in said.spans if s.label == label} - {None}
        # A number has one digit, so the tenth occurrence of a phrase cannot be pointed at.
        named = {r for r in wanted if r and find_occurrences(answer[slice(*r)], answer).index(r[0]) < 9}
        assert ranges == sorted(named)
    assert all(text == " ".join(text.split()) for text in parsed.missing)
    assert len(parsed.missing) == sum(bool(_letters(omission.text)) for omission in said.omissions)
    if order == "spans_only":
        assert parsed.critique is None
    elif _letters(said.critique):
        assert parsed.critique is not None
        assert _letters(parsed.critique) == _letters(said.critique)


@given(
    criticised(),
    st.builds(
        CritiqueLimits,
        reasoning=st.integers(0, 30),
        critique=st.integers(1, 30),
        quote=st.integers(40, 60),
        spans=st.integers(1, 3),
        omissions=st.integers(0, 2),
        omission=st.integers(1, 20),
    ),
    st.sampled_from(ORDERS),
)
def test_items_over_a_limit_are_omitted_but_never_cut(
    given: tuple[str, Feedback], limits: CritiqueLimits, order: Order
) -> None:
    answer, said = given
    text = format_critique(said, answer, CritiqueFormat(order=order, limits=limits))
    parsed, everything = (
        parse_critique(text, answer),
        parse_critique(format_critique(said, answer, CritiqueFormat(order=order, limits=ROOMY)), answer),
    )
    assert set(parsed.good) <= set(everything.good)
    assert set(parsed.poor) <= set(everything.poor)
    assert max(len(parsed.good), len(parsed.poor)) <= limits.spans
    assert set(parsed.missing) <= set(everything.missing)
    assert len(parsed.missing) <= limits.omissions
    assert all(len(omitted) <= limits.omission for omitted in parsed.missing)
    assert len(parsed.critique or "") <= limits.critique
    assert len(parsed.reasoning or "") <= limits.reasoning
    if parsed.critique and not EMPTY_CRITIQUE.startswith(parsed.critique):
        assert everything.critique is not None
        assert f"{everything.critique} ".startswith(f"{parsed.critique} ")


def test_the_most_severe_spans_are_kept_in_the_order_of_the_completion() -> None:
    said = feedback((0, 1, "poor", 0.5), (2, 3, "poor", 0.2), (4, 5, "poor", 1.0))
    assert parse_critique(
        format_critique(said, "a b c", CritiqueFormat(order="spans_only", limits=CritiqueLimits(spans=2))), "a b c"
    ).poor == [(0, 1), (4, 5)]


def test_a_quotation_over_its_limit_is_omitted() -> None:
    answer = "a" * 30 + " " + "b" * 12
    said = feedback((0, 43, "poor"), (31, 43, "poor"))
    assert parse_critique(
        format_critique(said, answer, CritiqueFormat(order="spans_only", limits=CritiqueLimits(quote=40))), answer
    ).poor == [(31, 43)]


@pytest.mark.parametrize(
    ("most", "kept"),
    [(100, "It is long. It is wrong!"), (20, "It is long."), (9, "It is"), (2, "It"), (1, "")],
)
def test_prose_is_shortened_by_whole_sentences_then_words(most: int, kept: str) -> None:
    assert shorten_prose("It is long. It is wrong!", most) == kept


def _letters(text: str) -> str:
    """Without white space and control characters, which prose does not keep."""
    return "".join(c for c in text if not c.isspace() and unicodedata.category(c) != "Cc")
