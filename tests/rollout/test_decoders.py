"""The plain decoder computes what a forward pass without a cache does."""

from __future__ import annotations

import pytest
import torch

from text2grad.models.batching import pad_left
from text2grad.models.loading import load_model
from text2grad.rollout.decoders import PlainDecoder, prefill

PROMPTS = [[5, 6, 7, 8], [9, 10], [11, 12, 13]]
CPU = torch.device("cpu")


@pytest.fixture
def model(tiny_model):
    return load_model(tiny_model).eval()


@torch.no_grad()
def test_a_step_gives_the_logits_of_a_plain_forward_pass(model):
    ids, mask = pad_left(PROMPTS, pad_id=0, device=CPU)
    cache, first = prefill(model, ids, mask)
    decoder = PlainDecoder(model, cache, mask, rows=torch.arange(3))
    second = decoder.step(torch.tensor([20, 21, 22]))
    for row, (prompt, token) in enumerate(zip(PROMPTS, (20, 21, 22), strict=True)):
        expected = model(input_ids=torch.tensor([[*prompt, token]])).logits[0]
        torch.testing.assert_close(first[row], expected[-2], atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(second[row], expected[-1], atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_completions_of_one_prompt_share_its_prefill(model):
    ids, mask = pad_left(PROMPTS, pad_id=0, device=CPU)
    cache, _ = prefill(model, ids, mask)
    decoder = PlainDecoder(model, cache, mask, rows=torch.tensor([0, 0, 1, 1, 2, 2]))
    logits = decoder.step(torch.tensor([3, 4, 3, 4, 3, 4]))
    for row, token in enumerate([3, 4, 3, 4, 3, 4]):
        expected = model(input_ids=torch.tensor([[*PROMPTS[row // 2], token]])).logits[0, -1]
        torch.testing.assert_close(logits[row], expected, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_dropped_rows_leave_the_others_unchanged(model):
    ids, mask = pad_left(PROMPTS, pad_id=0, device=CPU)
    decoder = PlainDecoder(model, prefill(model, ids, mask)[0], mask, rows=torch.arange(3))
    decoder.step(torch.tensor([20, 21, 22]))
    assert not decoder.should_compact(3)
    assert decoder.should_compact(2)
    decoder.keep(torch.tensor([0, 2]))
    logits = decoder.step(torch.tensor([30, 32]))
    for row, text in enumerate(([*PROMPTS[0], 20, 30], [*PROMPTS[2], 22, 32])):
        expected = model(input_ids=torch.tensor([text])).logits[0, -1]
        torch.testing.assert_close(logits[row], expected, atol=1e-5, rtol=1e-5)
