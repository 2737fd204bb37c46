"""The grammar: it takes every target, nothing that cannot be read, and it always closes in time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llguidance import LLMatcher
from reward_support import ANSWERS, SHORT

from text2grad.models.loading import load_tokenizer
from text2grad.reward_model.critique_format import CritiqueFormat, CritiqueLimits, Order, format_critique
from text2grad.reward_model.grammar import grammar, most_tokens
from text2grad.rollout.grammar import tokens_to_match
from text2grad.schema import Feedback, Omission, Span

Accepts = Callable[[str, str, CritiqueFormat], bool]
PROSE = st.text(max_size=30) | st.sampled_from(['say "hi" \\ there', "a\x07b\u2028c", "", "none", "<|im_end|>"])


@pytest.fixture(scope="module")
def accepts(tiny_model: Path) -> Accepts:
    tokenizer = load_tokenizer(tiny_model)
    vocabulary = tokens_to_match(tokenizer, len(tokenizer))

    def accepted(text: str, answer: str, layout: CritiqueFormat) -> bool:
        matcher = LLMatcher(vocabulary, LLMatcher.grammar_from_lark(grammar(answer, layout)), log_level=0)
        assert not matcher.is_error(), matcher.get_error()
        ids = tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
        return bool(matcher.consume_tokens(ids) and matcher.is_accepting())

    return accepted


def spans_only(limits: CritiqueLimits = SHORT) -> CritiqueFormat:
    return CritiqueFormat(order="spans_only", limits=limits)


@pytest.mark.parametrize(
    ("quote", "allowed"),
    [
        ('"fox"', True),
        ('"the fox\\njumped"', True),
        ('"\\"Go\\""', True),
        ('"fox"#2', True),
        ('"fox"; "."', True),
        ("none", True),
        ('"fox"; "fox"; "fox"', False),  # two at most
        ('"fo"', False),
        ('"cat"', False),
        ('" fox"', False),
        ('"\\njumped"', False),
        ('"fox"#0', False),
        ('"fox"#12', False),
        ('""', False),
        ("fox", False),
        ("none; none", False),
        ('"fox";', False),
    ],
)
def test_quotations_are_whole_chunks_of_the_answer(accepts: Accepts, quote: str, allowed: bool) -> None:
    answer = 'the fox\njumped. "Go"'
    assert accepts(f"Good: {quote}\nPoor: none\nMissing: none", answer, spans_only()) is allowed
    assert accepts(f"Good: none\nPoor: {quote}\nMissing: none", answer, spans_only()) is allowed


@pytest.mark.parametrize(
    ("order", "text"),
    [
        ("critique_first", "Critique: It is bad.\nGood: none\nPoor: none\nMissing: none"),
        ("spans_first", "Good: none\nPoor: none\nMissing: none\nCritique: It is bad."),
        ("spans_only", "Good: none\nPoor: none\nMissing: none"),
    ],
)
def test_the_order_is_the_layouts(accepts: Accepts, order: Order, text: str) -> None:
    for other in ("critique_first", "spans_first", "spans_only"):
        layout = CritiqueFormat.model_validate({"order": other, "limits": SHORT})
        assert accepts(text, "a", layout) is (other == order)


@pytest.mark.parametrize(
    ("critique", "allowed"),
    [
        ("x" * 20, True),
        ("x" * 21, False),
        ("🎉" * 20, True),
        ("", False),
        (" no", False),
        ("a\nb", False),
        ("a\x07b", False),
        ('"\\', True),
    ],
)
def test_a_critique_is_one_bounded_line(accepts: Accepts, critique: str, allowed: bool) -> None:
    text = f"Critique: {critique}\nGood: none\nPoor: none\nMissing: none"
    assert accepts(text, "a", CritiqueFormat(limits=SHORT)) is allowed


@pytest.mark.parametrize(
    ("missing", "allowed"),
    [
        ('"ten chars."', True),
        ('"eleven char"', False),
        ('"a \\"b\\" \\\\"', True),
        ('"a"; "b"', False),  # one at most
        ('"a\\n"', False),
        ('""', False),
        ("none", True),
    ],
)
def test_omissions_are_bounded_and_quoted(accepts: Accepts, missing: str, allowed: bool) -> None:
    assert accepts(f"Good: none\nPoor: none\nMissing: {missing}", "a", spans_only()) is allowed


def test_what_has_no_room_is_none(accepts: Accepts) -> None:
    layout = spans_only(CritiqueLimits(omissions=0))
    assert accepts("Good: none\nPoor: none\nMissing: none", "a", layout)
    assert not accepts('Good: none\nPoor: none\nMissing: "a"', "a", layout)


@pytest.mark.parametrize("answer", ["", " \n ", "\u00a0\u3000"])
def test_an_answer_of_nothing_but_space_has_no_quotations(accepts: Accepts, answer: str) -> None:
    assert accepts("Good: none\nPoor: none\nMissing: none", answer, spans_only())
    assert not accepts(f'Good: "{answer}"\nPoor: none\nMissing: none', answer, spans_only())


@settings(deadline=None)
@given(
    st.sampled_from(ANSWERS) | st.text(min_size=1, max_size=40),
    PROSE,
    PROSE,
    st.data(),
    st.sampled_from(["critique_first", "spans_first", "spans_only"]),
    st.sampled_from([SHORT, CritiqueLimits(), CritiqueLimits(reasoning=25, critique=5, quote=40, spans=1, omission=3)]),
)
def test_every_target_is_taken_and_fits(
    accepts: Accepts,
    answer: str,
    prose: str,
    omitted: str,
    data: st.DataObject,
    order: Order,
    limits: CritiqueLimits,
) -> None:
    edges = st.integers(0, len(answer))
    spans = data.draw(st.lists(st.tuples(edges, edges, st.sampled_from(["good", "poor"])), max_size=4))
    feedback = Feedback(
        critic="c",
        critique=prose,
        spans=[Span.model_validate({"start": a, "end": b, "label": label}) for a, b, label in spans if a < b],
        omissions=[Omission(text=omitted)],
    )
    text = format_critique(feedback, answer, CritiqueFormat(order=order, limits=limits))
    assert accepts(text, answer, CritiqueFormat(order=order, limits=limits))
    assert len(text.encode()) + 1 <= most_tokens(answer, limits)


def test_most_tokens_counts_bytes() -> None:
    # Structure and the end token: 54 letters and spaces, 5 line breaks, 1. Prose: 20 x 4. Omission: 10 x 4, and `""; `.
    around = 54 + 5 + 1 + 80 + 44
    assert most_tokens("", SHORT) == around + 4 * 6
    # Two spans of each polarity: the whole answer, and `""#9; `.
    assert most_tokens("the fox", SHORT) == around + 4 * (7 + 6)
    assert most_tokens("a\n", SHORT) == around + 4 * (3 + 6)
    # 40 characters at most, one more where the first is escaped; the widest stretch of that length counts.
    assert most_tokens("x" * 200, SHORT) == around + 4 * (41 + 6)
    assert most_tokens("x" * 200 + "🎉" * 2 + "y" * 10, SHORT) == around + 4 * (41 + 6 + 6)


def test_an_answer_with_a_smile_fits_the_default_models_context() -> None:
    assert most_tokens("A good answer of some length. " * 20 + "🎉", CritiqueLimits()) + 1024 < 8192
