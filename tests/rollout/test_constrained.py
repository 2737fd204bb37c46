"""Masks of a batch of completions, each with its own grammar."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from llguidance import LLExecutor, LLMatcher, LLTokenizer
from llguidance.numpy import fill_next_token_bitmask_par

from text2grad.models.loading import load_tokenizer
from text2grad.rollout import constrained
from text2grad.rollout.constrained import FREE_TEXT_MARGIN, FreeTextTracker, GrammarGuide, GuidedBatch, unset_bits
from text2grad.rollout.grammar import Masks, build_llguidance_tokenizer


def grammar_of(max_length: int, ending: str) -> str:
    return f'start: "Note: " TEXT "\\n{ending}"\nTEXT: /[a-z ]{{1,{max_length}}}/\n'


@pytest.fixture(scope="module")
def vocabulary(tiny_model: Path) -> LLTokenizer:
    tokenizer = load_tokenizer(tiny_model)
    return build_llguidance_tokenizer(tokenizer, len(tokenizer))


def allowed_tokens(guide: GrammarGuide, completions: list[int], vocabulary: LLTokenizer) -> list[list[int]]:
    masks = torch.zeros(len(completions), -(-vocabulary.vocab_size // 32), dtype=torch.int32)
    guide.fill(masks.numpy(), range(len(completions)), completions)
    return [row.nonzero().flatten().tolist() for row in ~unset_bits(masks, vocabulary.vocab_size)]


def append(guide: GrammarGuide, completion: int, text: str, vocabulary: LLTokenizer) -> None:
    for token in vocabulary.tokenize_str(text):
        guide.advance([completion], [token])


def test_each_completion_has_its_own_grammar(vocabulary: LLTokenizer) -> None:
    guide = GrammarGuide(vocabulary, [lambda: 'start: "yes"\n', lambda: 'start: "no"\n'])
    first, second = allowed_tokens(guide, [0, 1], vocabulary)
    assert {vocabulary.decode_bytes([token])[:1] for token in first} == {b"y"}
    assert {vocabulary.decode_bytes([token])[:1] for token in second} == {b"n"}


def test_only_the_end_token_may_follow_a_complete_grammar(vocabulary: LLTokenizer) -> None:
    guide = GrammarGuide(vocabulary, [lambda: 'start: "yes"\n'] * 2)
    append(guide, 1, "yes", vocabulary)
    complete, new = allowed_tokens(guide, [1, 0], vocabulary)
    assert complete == [vocabulary.eos_token]
    assert vocabulary.eos_token not in new
    guide.advance([1], [vocabulary.eos_token])
    assert allowed_tokens(guide, [1], vocabulary) == [[vocabulary.eos_token]]


def test_a_token_that_violates_the_grammar_is_an_error(vocabulary: LLTokenizer) -> None:
    guide = GrammarGuide(vocabulary, [lambda: 'start: "yes"\n'])
    with pytest.raises(RuntimeError, match="a sampled token violates the grammar"):
        guide.advance([0], [vocabulary.eos_token])


def test_the_next_grammar_depends_on_the_text_so_far(vocabulary: LLTokenizer) -> None:
    calls = []

    def next_grammar(completion: int, text: str) -> str:
        calls.append((completion, text))
        return f'start: "{text}"\n'

    guide = GrammarGuide(vocabulary, [lambda: 'start: "a" | "b"\n'] * 2, next_grammar)
    append(guide, 1, "b", vocabulary)
    assert calls == [(1, "b")]
    append(guide, 1, "b", vocabulary)
    assert calls == [(1, "b")], "the second grammar is the last"
    new, complete = allowed_tokens(guide, [0, 1], vocabulary)
    assert {vocabulary.decode_bytes([token]) for token in new} == {b"a", b"b"}
    assert complete == [vocabulary.eos_token]


def test_no_matcher_runs_inside_free_text(vocabulary: LLTokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    matched_rows: list[int] = []

    def count(executor: LLExecutor, matching: list[tuple[LLMatcher, int]], masks: Masks) -> None:
        matched_rows.extend(row for _, row in matching)
        fill_next_token_bitmask_par(executor, matching, masks)

    monkeypatch.setattr(constrained, "fill_next_token_bitmask_par", count)
    max_length = FREE_TEXT_MARGIN + 20
    short = grammar_of(FREE_TEXT_MARGIN + 1, "end")
    grammars = [lambda: grammar_of(max_length, "one"), lambda: grammar_of(max_length, "two")]
    guide = GrammarGuide(
        vocabulary, grammars, free_text=lambda: FreeTextTracker(vocabulary, "Note: ", max_length, short, 2)
    )
    append(guide, 1, "Note: well", vocabulary)
    new, inside = allowed_tokens(guide, [0, 1], vocabulary)
    assert matched_rows == [0]
    assert len(inside) > len(new) > 0
    append(guide, 1, "\nt", vocabulary)
    (after,) = allowed_tokens(guide, [1], vocabulary)
    assert matched_rows == [0, 0]
    assert {vocabulary.decode_bytes([token])[:1] for token in after} == {b"w"}


def test_rows_of_a_batch_keep_their_grammars_when_others_are_dropped(vocabulary: LLTokenizer) -> None:
    guide = GrammarGuide(vocabulary, [lambda letter=letter: f'start: "{letter}"\n' for letter in "abc"])
    batch = GuidedBatch(guide, 3, [vocabulary.eos_token], torch.device("cpu"))
    logits = torch.zeros(3, vocabulary.vocab_size)
    a, b, c = (vocabulary.tokenize_str(letter)[0] for letter in "abc")
    assert [row.isfinite().nonzero().flatten().tolist() for row in batch.constrain(logits)] == [[a], [b], [c]]
    batch.keep([0, 2])
    assert [row.isfinite().nonzero().flatten().tolist() for row in batch.constrain(logits[:2])] == [[a], [c]]
    batch.record(torch.tensor([a, c]))
    assert batch.constrain(logits[:2]).argmax(-1).tolist() == [vocabulary.eos_token] * 2
    batch.record(torch.tensor([vocabulary.eos_token, vocabulary.eos_token]))
    assert batch.active_rows() == []


def test_bits_are_read_lowest_first() -> None:
    bits = torch.tensor([[0b101, -1]], dtype=torch.int32)
    assert unset_bits(bits, 36).int().tolist() == [[0, 1, 0] + [1] * 29 + [0] * 4]
