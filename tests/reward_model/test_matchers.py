"""Walks through the grammar: whatever is drawn, it can be read and it ends in time."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from llguidance import LLExecutor, LLMatcher, LLTokenizer
from llguidance.numpy import fill_next_token_bitmask_par
from reward_support import ANSWERS, SHORT, asked, tiny_reward_model
from torch import Tensor

from text2grad.models.loading import load_tokenizer
from text2grad.reward_model import matchers as matching
from text2grad.reward_model.grammar import most_tokens
from text2grad.reward_model.judgement import read
from text2grad.reward_model.matchers import Matchers
from text2grad.reward_model.prose import FAR
from text2grad.reward_model.settings import Layout, Limits, Order
from text2grad.rollout.constrained import missing
from text2grad.rollout.grammar import Masks, reply_of, tokens_to_match
from text2grad.rollout.sampling import sample_tokens

REASONED = Limits(reasoning=12, critique=12, quote=41, spans=3, omissions=2, omission=5)
ROOMY = Limits(critique=FAR + 20, quote=41, spans=2, omissions=1, omission=5)  # its critique begins as open prose


@pytest.fixture(scope="module")
def vocabulary(tiny_model: Path) -> LLTokenizer:
    tokenizer = load_tokenizer(tiny_model)
    return tokens_to_match(tokenizer, len(tokenizer))


def allowed(matchers: Matchers, rows: list[int], width: int) -> Tensor:
    masks = torch.zeros(len(rows), -(-width // 32), dtype=torch.int32)
    matchers.fill(masks.numpy(), range(len(rows)), rows)
    return ~missing(masks, width)


def walk(vocabulary: LLTokenizer, answers: list[str], layout: Layout, logits: Tensor, seed: int) -> list[list[int]]:
    """Draw all judgements side by side from the same logits, (vocabulary,), until the last has ended."""
    matchers = Matchers(vocabulary, answers, layout)
    generator = torch.Generator().manual_seed(seed)
    written: list[list[int]] = [[] for _ in answers]
    going = list(range(len(answers)))
    while going:
        constrained = logits.masked_fill(~allowed(matchers, going, len(logits)), float("-inf"))
        tokens = sample_tokens(constrained, torch.rand(len(going), generator=generator), temperature=1.0).tolist()
        matchers.advance(going, tokens)
        for row, token in zip(going, tokens, strict=True):
            written[row].append(token)
            assert len(written[row]) <= most_tokens(answers[row], layout.limits)
        going = [row for row in going if written[row][-1] != vocabulary.eos_token]
    return written


@pytest.mark.parametrize("order", ["critique_first", "spans_first", "spans_only"])
@pytest.mark.parametrize("long_winded", [False, True])
@pytest.mark.parametrize("limits", [REASONED, ROOMY])
def test_random_walks_can_be_read(vocabulary: LLTokenizer, order: Order, limits: Limits, long_winded: bool) -> None:
    layout = Layout(order=order, limits=limits)
    logits = torch.zeros(vocabulary.vocab_size)
    if long_winded:
        # Byte by byte, rarely closing anything: as near to the longest judgement as chance gets.
        logits[:] = -8.0
        for token in range(vocabulary.vocab_size):
            if len(vocabulary.decode_bytes([token])) == 1 and vocabulary.decode_bytes([token]) not in b'"\n#n':
                logits[token] = 0.0
    quoted = 0
    for seed in range(4):
        for answer, ids in zip(ANSWERS, walk(vocabulary, ANSWERS, layout, logits, seed), strict=True):
            text = reply_of(ids, vocabulary)
            assert text.encode() == vocabulary.decode_bytes(ids[:-1]), "no character is cut in half"
            spans = list(read(text, answer).spans())
            assert all(0 <= start < end <= len(answer) for _, (start, end) in spans)
            quoted += len(spans)
    assert quoted > 20


def test_only_what_the_grammar_allows_is_left(vocabulary: LLTokenizer) -> None:
    matchers = Matchers(vocabulary, ["a", "b"], Layout(order="spans_only", limits=SHORT))
    kept = allowed(matchers, [0, 1], vocabulary.vocab_size)
    assert kept.shape == (2, vocabulary.vocab_size)
    assert {vocabulary.decode_bytes([i])[:1] for i in kept[0].nonzero().flatten().tolist()} == {b"G"}


def test_after_the_last_line_nothing_but_the_end_can_come(vocabulary: LLTokenizer) -> None:
    matchers = Matchers(vocabulary, ["a", "b"], Layout(order="spans_only", limits=SHORT))
    for token in vocabulary.tokenize_str("Good: none\nPoor: none\nMissing: none"):
        matchers.advance([1], [token])
    left = allowed(matchers, [1, 0], vocabulary.vocab_size)
    assert left[0].nonzero().flatten().tolist() == [vocabulary.eos_token]
    assert not left[1, vocabulary.eos_token]  # the other row has only begun
    matchers.advance([1], [vocabulary.eos_token])
    assert allowed(matchers, [1], vocabulary.vocab_size).sum() == 1


def test_in_open_prose_no_matcher_is_asked(vocabulary: LLTokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    asked_for: list[int] = []

    def counted(executor: LLExecutor, going: list[tuple[LLMatcher, int]], masks: Masks) -> None:
        asked_for.extend(line for _, line in going)
        fill_next_token_bitmask_par(executor, going, masks)

    monkeypatch.setattr(matching, "fill_next_token_bitmask_par", counted)
    matchers = Matchers(vocabulary, ["a", "b"], Layout(limits=ROOMY))
    for token in vocabulary.tokenize_str("Critique: well"):
        matchers.advance([1], [token])
    kept = allowed(matchers, [0, 1], vocabulary.vocab_size)
    assert asked_for == [0]
    assert kept[1].sum() > kept[0].sum() > 0


def test_a_token_against_the_grammar_is_an_error(vocabulary: LLTokenizer) -> None:
    matchers = Matchers(vocabulary, ["a"], Layout(limits=SHORT))
    with pytest.raises(RuntimeError, match="against the grammar"):
        matchers.advance([0], [vocabulary.eos_token])


@pytest.mark.parametrize("order", ["critique_first", "spans_first", "spans_only"])
def test_what_a_random_model_writes_can_be_read(tiny_model: Path, order: Order) -> None:
    """It knows nothing, so only the grammar can be what keeps its judgements in form."""
    model = tiny_reward_model(tiny_model, Layout(order=order, limits=SHORT))
    examples = asked(ANSWERS)
    greedy = model.write(examples)
    sampled = model.write(examples, temperature=1.0, seed=3, batch_size=4)
    for text, answer in zip([*greedy, *sampled], ANSWERS * 2, strict=True):
        assert isinstance(text, str)
        read(text, answer)
    assert greedy == model.write(examples)
    assert sampled == model.write(examples, temperature=1.0, seed=3, batch_size=9), "draws do not depend on the batch"
    assert sampled != model.write(examples, temperature=1.0, seed=4)
