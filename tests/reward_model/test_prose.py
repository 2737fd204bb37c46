"""Free text far from its limit: the mask that is known beforehand against what the matcher of each answer says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from llguidance import LLTokenizer
from llguidance.numpy import fill_next_token_bitmask
from reward_support import ANSWERS

from text2grad.models.loading import load_tokenizer
from text2grad.reward_model.critique_format import CritiqueFormat, CritiqueLimits, Order
from text2grad.reward_model.grammar import grammar
from text2grad.reward_model.prose import FAR, OpenProse
from text2grad.rollout.grammar import Masks, compiled, tokens_to_match

LIMIT = FAR + 40
WRITTEN = (
    "Critique: The day — naïve 日本 🙂 — is 'not' \"named\" in the source; "
    "it goes on and on, and on until it is long\nGood: none"
)


@pytest.fixture(scope="module")
def vocabulary(tiny_model: Path) -> LLTokenizer:
    tokenizer = load_tokenizer(tiny_model)
    return tokens_to_match(tokenizer, len(tokenizer))


def layout(order: Order = "critique_first", **limits: int) -> CritiqueFormat:
    return CritiqueFormat(order=order, limits=CritiqueLimits(**{"critique": LIMIT, **limits}))


def bits(masks: Masks) -> set[int]:
    return set(np.flatnonzero(np.unpackbits(masks.view(np.uint8), bitorder="little")).tolist())


def byte_tokens(text: str, vocabulary: LLTokenizer) -> list[int]:
    """Byte by byte, so that characters are cut in half everywhere."""
    of = {vocabulary.decode_bytes([token]): token for token in range(vocabulary.vocab_size)}
    return [of[bytes([byte])] for byte in text.encode()]


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("bytewise", [False, True])
def test_in_open_prose_the_mask_is_that_of_the_matcher(vocabulary: LLTokenizer, answer: str, bytewise: bool) -> None:
    prose = OpenProse(vocabulary, layout(), 1)
    matcher = compiled(vocabulary, grammar(answer, layout()))
    written, open_after = b"", []
    for token in byte_tokens(WRITTEN, vocabulary) if bytewise else vocabulary.tokenize_str(WRITTEN):
        assert matcher.consume_token(token)
        prose.advance(0, token)
        written += vocabulary.decode_bytes([token])
        if 0 in prose:
            open_after.append(written)
            mask = np.zeros((1, len(prose.mask)), dtype=np.int32)
            fill_next_token_bitmask(matcher, mask)
            longer = {
                token for token in bits(mask[0]) if len(vocabulary.decode_bytes([token]).decode(errors="ignore")) > FAR
            }
            assert bits(prose.mask) == bits(mask[0]) - longer
    assert open_after, "there is a stretch of open prose"
    assert all(len("Critique: ") < len(so_far) <= len("Critique: ") + LIMIT - FAR for so_far in open_after)


def test_prose_is_over_with_its_line(vocabulary: LLTokenizer) -> None:
    prose = OpenProse(vocabulary, layout(), 2)
    for token in vocabulary.tokenize_str("Critique: Short."):
        prose.advance(0, token)
    assert 0 in prose
    assert 1 not in prose, "nobody has written there"
    for token in vocabulary.tokenize_str("\nGood: none"):
        prose.advance(0, token)
        assert 0 not in prose


def test_with_reasoning_only_the_reasoning_is_open_prose(vocabulary: LLTokenizer) -> None:
    prose = OpenProse(vocabulary, layout(reasoning=LIMIT), 1)
    text = "Reasoning: It is so.\nCritique: It is not."
    opened = []
    for token in vocabulary.tokenize_str(text):
        prose.advance(0, token)
        opened.append(0 in prose)
    assert any(opened)
    assert not opened[-1]


@pytest.mark.parametrize("order", ["spans_first", "spans_only"])
def test_where_prose_is_not_the_first_line_it_is_never_open(vocabulary: LLTokenizer, order: Order) -> None:
    prose = OpenProse(vocabulary, layout(order), 1)
    for token in vocabulary.tokenize_str("Good: none\nPoor: none\nMissing: none\nCritique: It is not."):
        prose.advance(0, token)
        assert 0 not in prose


def test_a_short_limit_is_never_far(vocabulary: LLTokenizer) -> None:
    prose = OpenProse(vocabulary, layout(critique=FAR), 1)
    for token in vocabulary.tokenize_str("Critique: It is not."):
        prose.advance(0, token)
        assert 0 not in prose
