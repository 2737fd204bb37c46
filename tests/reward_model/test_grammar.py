"""The grammar: it accepts every training target, everything it accepts is readable, and it always ends in time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from llguidance import LLMatcher, LLTokenizer
from llguidance.numpy import fill_next_token_bitmask
from reward_support import ANSWERS, SHORT, tiny_reward_model, unlabelled
from torch import Tensor

from text2grad.models.loading import load_tokenizer
from text2grad.reward_model.critique_format import (
    CritiqueFormat,
    CritiqueLimits,
    Order,
    format_critique,
    parse_critique,
)
from text2grad.reward_model.grammar import (
    critique_grammar,
    critique_guide,
    max_critique_tokens,
    track_free_text,
)
from text2grad.rollout.constrained import FREE_TEXT_MARGIN, unset_bits
from text2grad.rollout.grammar import Masks, build_llguidance_tokenizer, compile_grammar, decode_until_end
from text2grad.rollout.sampling import sample_tokens
from text2grad.schema import Feedback, Omission, Span

Accepts = Callable[[str, str, CritiqueFormat], bool]
REASONED = CritiqueLimits(reasoning=12, critique=12, quote=41, spans=3, omissions=2, omission=5)
# Its critique starts with free text that needs no matcher.
LONG = CritiqueLimits(critique=FREE_TEXT_MARGIN + 20, quote=41, spans=2, omissions=1, omission=5)
PROSE = st.text(max_size=30) | st.sampled_from(['say "hi" \\ there', "a\x07b\u2028c", "", "none", "<|im_end|>"])


@pytest.fixture(scope="module")
def vocabulary(tiny_model: Path) -> LLTokenizer:
    tokenizer = load_tokenizer(tiny_model)
    return build_llguidance_tokenizer(tokenizer, len(tokenizer))


@pytest.fixture(scope="module")
def accepts(tiny_model: Path, vocabulary: LLTokenizer) -> Accepts:
    tokenizer = load_tokenizer(tiny_model)

    def accepted(text: str, answer: str, layout: CritiqueFormat) -> bool:
        matcher = LLMatcher(vocabulary, LLMatcher.grammar_from_lark(critique_grammar(answer, layout)), log_level=0)
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
def test_quotes_are_whole_chunks_of_the_completion(accepts: Accepts, quote: str, allowed: bool) -> None:
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
def test_the_order_is_that_of_the_settings(accepts: Accepts, order: Order, text: str) -> None:
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


@pytest.mark.parametrize(
    ("poor", "allowed"),
    [
        ('"a" -> "b"', True),
        ('"a" -> ""', True),
        ('"a"#2 -> "b c"; "a"', True),
        ('"a" -> "ten chars."', True),
        ('"a" -> "eleven char"', False),
        ('"a" -> "\\"b\\" \\\\"', True),
        ('"a" -> " b"', False),
        ('"a" -> "b\\n"', False),
        ('"a" -> b', False),
        ('"a" -> "b" -> "c"', False),
        ('none -> "b"', False),
    ],
)
def test_replacements_are_bounded_free_text(accepts: Accepts, poor: str, allowed: bool) -> None:
    limits = SHORT.model_copy(update={"replacement": 10})
    assert accepts(f"Good: none\nPoor: {poor}\nMissing: none", "a a", spans_only(limits)) is allowed


def test_only_what_is_poor_is_replaced(accepts: Accepts) -> None:
    assert not accepts('Good: "a" -> "b"\nPoor: none\nMissing: none', "a", spans_only())


def test_without_replacements_there_are_no_arrows(accepts: Accepts) -> None:
    layout = spans_only(CritiqueLimits(replacement=0))
    assert accepts('Good: none\nPoor: "a"\nMissing: none', "a", layout)
    assert not accepts('Good: none\nPoor: "a" -> "b"\nMissing: none', "a", layout)


def test_without_omissions_the_list_is_none(accepts: Accepts) -> None:
    layout = spans_only(CritiqueLimits(omissions=0))
    assert accepts("Good: none\nPoor: none\nMissing: none", "a", layout)
    assert not accepts('Good: none\nPoor: none\nMissing: "a"', "a", layout)


@pytest.mark.parametrize("answer", ["", " \n ", "\u00a0\u3000"])
def test_a_completion_of_white_space_has_no_quotes(accepts: Accepts, answer: str) -> None:
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
def test_every_training_target_is_accepted_and_fits(
    accepts: Accepts,
    answer: str,
    prose: str,
    omitted: str,
    data: st.DataObject,
    order: Order,
    limits: CritiqueLimits,
) -> None:
    edges = st.integers(0, len(answer))
    replacements = st.none() | st.text(max_size=90) | st.sampled_from(["", 'a "b" \\', "one\ntwo"])
    labels = st.just(("good", None)) | st.tuples(st.just("poor"), replacements)
    spans = data.draw(st.lists(st.tuples(edges, edges, labels), max_size=4))
    feedback = Feedback(
        critic="c",
        critique=prose,
        spans=[
            Span.model_validate({"start": a, "end": b, "label": label, "replacement": replacement})
            for a, b, (label, replacement) in spans
            if a < b
        ],
        omissions=[Omission(text=omitted)],
    )
    text = format_critique(feedback, answer, CritiqueFormat(order=order, limits=limits))
    assert accepts(text, answer, CritiqueFormat(order=order, limits=limits))
    assert len(text.encode()) + 1 <= max_critique_tokens(answer, limits)


def test_max_critique_tokens_counts_bytes() -> None:
    # Structure and the end token: 54 letters and spaces, 5 line breaks, 1. Prose: 20 x 4. Omission: 10 x 4, and `""; `.
    # Two replacements: 80 x 4, and ` -> ""`.
    around = 54 + 5 + 1 + 80 + 44 + 2 * (320 + 6)
    assert max_critique_tokens("", SHORT) == around + 4 * 6
    # Two spans of each polarity: the whole answer, and `""#9; `.
    assert max_critique_tokens("the fox", SHORT) == around + 4 * (7 + 6)
    assert max_critique_tokens("a\n", SHORT) == around + 4 * (3 + 6)
    # 40 characters at most, one more where the first is escaped; the widest stretch of that length counts.
    assert max_critique_tokens("x" * 200, SHORT) == around + 4 * (41 + 6)
    assert max_critique_tokens("x" * 200 + "🎉" * 2 + "y" * 10, SHORT) == around + 4 * (41 + 6 + 6)


def test_a_completion_with_an_emoji_fits_the_default_models_context() -> None:
    assert max_critique_tokens("A good answer of some length. " * 20 + "🎉", CritiqueLimits()) + 1024 < 8192


def sample_critiques(
    vocabulary: LLTokenizer, answers: list[str], layout: CritiqueFormat, logits: Tensor, seed: int
) -> list[list[int]]:
    """Sample all critiques in one batch from the same logits, (vocabulary,), until the last has ended."""
    guide = critique_guide(vocabulary, answers, layout)
    generator = torch.Generator().manual_seed(seed)
    completions: list[list[int]] = [[] for _ in answers]
    active = list(range(len(answers)))
    while active:
        masks = torch.zeros(len(active), -(-len(logits) // 32), dtype=torch.int32)
        guide.fill(masks.numpy(), range(len(active)), active)
        constrained = logits.masked_fill(unset_bits(masks, len(logits)), float("-inf"))
        tokens = sample_tokens(constrained, torch.rand(len(active), generator=generator), temperature=1.0).tolist()
        guide.advance(active, tokens)
        for i, token in zip(active, tokens, strict=True):
            completions[i].append(token)
            assert len(completions[i]) <= max_critique_tokens(answers[i], layout.limits)
        active = [i for i in active if completions[i][-1] != vocabulary.eos_token]
    return completions


@pytest.mark.parametrize("order", ["critique_first", "spans_first", "spans_only"])
@pytest.mark.parametrize("long_winded", [False, True])
@pytest.mark.parametrize("limits", [REASONED, LONG])
def test_random_critiques_are_readable(
    vocabulary: LLTokenizer, order: Order, limits: CritiqueLimits, long_winded: bool
) -> None:
    layout = CritiqueFormat(order=order, limits=limits)
    logits = torch.zeros(vocabulary.vocab_size)
    if long_winded:
        # Byte by byte, rarely closing anything: as near to the longest critique as chance gets.
        logits[:] = -8.0
        for token in range(vocabulary.vocab_size):
            if len(vocabulary.decode_bytes([token])) == 1 and vocabulary.decode_bytes([token]) not in b'"\n#n':
                logits[token] = 0.0
    num_spans = 0
    for seed in range(4):
        for answer, ids in zip(ANSWERS, sample_critiques(vocabulary, ANSWERS, layout, logits, seed), strict=True):
            text = decode_until_end(ids, vocabulary)
            assert text.encode() == vocabulary.decode_bytes(ids[:-1]), "no character is incomplete"
            spans = list(parse_critique(text, answer).spans())
            assert all(0 <= start < end <= len(answer) for _, (start, end) in spans)
            num_spans += len(spans)
    assert num_spans > 20


@pytest.mark.parametrize("order", ["critique_first", "spans_first", "spans_only"])
def test_what_a_random_model_writes_is_readable(tiny_model: Path, order: Order) -> None:
    """It knows nothing, so only the grammar can keep its critiques in format."""
    model = tiny_reward_model(tiny_model, critique_format=CritiqueFormat(order=order, limits=SHORT))
    examples = unlabelled(ANSWERS)
    greedy = model.generate_critiques(examples)
    sampled = model.generate_critiques(examples, temperature=1.0, seed=3, batch_size=4)
    for text, answer in zip([*greedy, *sampled], ANSWERS * 2, strict=True):
        assert isinstance(text, str)
        parse_critique(text, answer)
    assert greedy == model.generate_critiques(examples)
    assert sampled == model.generate_critiques(examples, temperature=1.0, seed=3, batch_size=9), (
        "draws do not depend on the batch"
    )
    assert sampled != model.generate_critiques(examples, temperature=1.0, seed=4)


LIMIT = FREE_TEXT_MARGIN + 40
WRITTEN = (
    "Critique: The day — naïve 日本 🙂 — is 'not' \"named\" in the source; "
    "it goes on and on, and on until it is long\nGood: none"
)


def long_layout(order: Order = "critique_first", **limits: int) -> CritiqueFormat:
    return CritiqueFormat(order=order, limits=CritiqueLimits(**{"critique": LIMIT, **limits}))


def bits(masks: Masks) -> set[int]:
    return set(np.flatnonzero(np.unpackbits(masks.view(np.uint8), bitorder="little")).tolist())


def byte_tokens(text: str, vocabulary: LLTokenizer) -> list[int]:
    """Byte by byte, so that most characters are incomplete."""
    of = {vocabulary.decode_bytes([token]): token for token in range(vocabulary.vocab_size)}
    return [of[bytes([byte])] for byte in text.encode()]


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("bytewise", [False, True])
def test_the_mask_of_free_text_is_that_of_the_matcher(vocabulary: LLTokenizer, answer: str, bytewise: bool) -> None:
    free_text = track_free_text(vocabulary, long_layout(), 1)
    matcher = compile_grammar(vocabulary, critique_grammar(answer, long_layout()))
    written, texts_inside = b"", []
    for token in byte_tokens(WRITTEN, vocabulary) if bytewise else vocabulary.tokenize_str(WRITTEN):
        assert matcher.consume_token(token)
        free_text.advance(0, token)
        written += vocabulary.decode_bytes([token])
        if 0 in free_text:
            texts_inside.append(written)
            mask = np.zeros((1, len(free_text.mask)), dtype=np.int32)
            fill_next_token_bitmask(matcher, mask)
            too_long = {
                token
                for token in bits(mask[0])
                if len(vocabulary.decode_bytes([token]).decode(errors="ignore")) > FREE_TEXT_MARGIN
            }
            assert bits(free_text.mask) == bits(mask[0]) - too_long
    assert texts_inside, "there is a stretch of free text"
    assert all(len("Critique: ") < len(text) <= len("Critique: ") + LIMIT - FREE_TEXT_MARGIN for text in texts_inside)


def test_free_text_ends_with_its_line(vocabulary: LLTokenizer) -> None:
    free_text = track_free_text(vocabulary, long_layout(), 2)
    for token in vocabulary.tokenize_str("Critique: Short."):
        free_text.advance(0, token)
    assert 0 in free_text
    assert 1 not in free_text, "no token was appended"
    for token in vocabulary.tokenize_str("\nGood: none"):
        free_text.advance(0, token)
        assert 0 not in free_text


def test_with_reasoning_only_the_reasoning_is_free_text(vocabulary: LLTokenizer) -> None:
    free_text = track_free_text(vocabulary, long_layout(reasoning=LIMIT), 1)
    text = "Reasoning: It is so.\nCritique: It is not."
    is_inside = []
    for token in vocabulary.tokenize_str(text):
        free_text.advance(0, token)
        is_inside.append(0 in free_text)
    assert any(is_inside)
    assert not is_inside[-1]


@pytest.mark.parametrize("order", ["spans_first", "spans_only"])
def test_critiques_that_start_with_spans_have_no_leading_free_text(vocabulary: LLTokenizer, order: Order) -> None:
    assert track_free_text(vocabulary, long_layout(order), 1) is None


def test_free_text_with_a_short_limit_is_never_used(vocabulary: LLTokenizer) -> None:
    free_text = track_free_text(vocabulary, long_layout(critique=FREE_TEXT_MARGIN), 1)
    for token in vocabulary.tokenize_str("Critique: It is not."):
        free_text.advance(0, token)
        assert 0 not in free_text
