"""The fast decoders give the logits of the plain one."""

from __future__ import annotations

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaForCausalLM

from text2grad.models.batching import pad_left
from text2grad.models.loading import load_model
from text2grad.rollout.decoders import PlainDecoder, prefill
from text2grad.rollout.fast import decoders, fused_layers
from text2grad.rollout.fast import modules as norms
from text2grad.rollout.fast.decoders import (
    GraphDecoder,
    GroupedDecoder,
    cache_growth,
    can_be_captured,
    fast_decoder,
)

PROMPTS = [[5, 6, 7, 8], [9, 10], [11, 12, 13]]
TOKENS = torch.tensor([[3, 4, 5], [6, 7, 8], [9, 10, 11], [12, 13, 14], [15, 16, 17], [18, 19, 20], [21, 22, 23]])
EACH_ONCE = torch.arange(3)


@pytest.fixture
def model(tiny_model):
    return load_model(tiny_model).eval()


@torch.no_grad()
def read(model):
    """Return the cache and the mask of the prompts."""
    ids, mask = pad_left(PROMPTS, pad_id=0, device=model.device)
    return prefill(model, ids, mask)[0], mask


def plain_decoder(model, rows=EACH_ONCE):
    return PlainDecoder(model, *read(model), rows.to(model.device))


def fixed_decoder(model, rows=EACH_ONCE, max_tokens=7):
    return GraphDecoder(model, *read(model), rows, max_tokens, capture=False)


@torch.no_grad()
def test_fixed_tensors_give_the_logits_of_the_plain_decoder(model, monkeypatch):
    monkeypatch.setattr(decoders, "cache_growth", lambda _: 3)  # seven steps reallocate twice
    plain, fixed = plain_decoder(model), fixed_decoder(model)
    for tokens in TOKENS:
        torch.testing.assert_close(fixed.step(tokens), plain.step(tokens), atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_grouped_attention_gives_the_same_logits(model):
    plain, grouped = plain_decoder(model), GroupedDecoder(model, *read(model), EACH_ONCE)
    for tokens in TOKENS:
        torch.testing.assert_close(grouped.step(tokens), plain.step(tokens), atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_a_step_with_fixed_tensors_fuses_every_norm(model, monkeypatch):
    computed, rms_norm = [], norms.rms_norm

    def record(norm, states):
        computed.append(norm)
        return rms_norm(norm, states)

    monkeypatch.setattr(norms, "rms_norm", record)
    monkeypatch.setattr(fused_layers, "rms_norm", record)
    fixed_decoder(model, max_tokens=1).step(TOKENS[0])
    assert len(computed) == 2 * model.config.num_hidden_layers + 1


def test_the_decoder_depends_on_model_and_device(model, tiny_model):
    assert type(fast_decoder(model, *read(model), EACH_ONCE, max_tokens=1)) is GroupedDecoder  # no graphs on a CPU
    eager = LlamaForCausalLM.from_pretrained(tiny_model, attn_implementation="eager")
    assert fast_decoder(eager, *read(eager), EACH_ONCE, max_tokens=1) is None


def test_models_that_synchronise_with_the_host_are_not_captured(model):
    assert can_be_captured(model)
    assert can_be_captured(get_peft_model(model, LoraConfig(target_modules=["q_proj"])))
    model.config.rope_parameters = {"rope_type": "dynamic", "factor": 2.0}
    assert not can_be_captured(model)
    model.config.rope_parameters = {"full_attention": {"rope_type": "longrope"}}
    assert not can_be_captured(model)
    model.config.rope_parameters = {"full_attention": {"rope_type": "default"}}
    assert can_be_captured(model)
    model._can_compile_fullgraph = False  # as the library declares for some families
    assert not can_be_captured(model)


@torch.no_grad()
def test_dropped_rows_leave_the_others_unchanged(model):
    plain, fixed = plain_decoder(model), fixed_decoder(model)
    rows = torch.tensor([0, 2])
    for step, tokens in enumerate(TOKENS):
        if step == 2:
            plain.keep(rows)
            fixed.keep(rows)
        given = tokens if step < 2 else tokens[rows]
        torch.testing.assert_close(fixed.step(given), plain.step(given), atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_rows_are_dropped_once_finished_ones_have_cost_as_much_as_a_capture(model, monkeypatch):
    fixed = fixed_decoder(model, max_tokens=100)
    layers, heads, width = model.config.num_hidden_layers, model.config.num_key_value_heads, model.config.head_dim
    row = layers * 2 * heads * width * 104 * 4  # bytes: keys and values of 4 + 100 tokens in float32
    monkeypatch.setattr(decoders, "CAPTURE_COST", 4 * row)
    for tokens, active, pays in zip(TOKENS, (3, 2, 2, 2, 1, 1), (False, False, False, False, True, True), strict=False):
        fixed.step(tokens)
        assert fixed.should_compact(active) is pays
    fixed.keep(torch.tensor([1]))
    fixed.step(TOKENS[0][:1])
    assert not fixed.should_compact(1), "the count starts again"


def test_a_cache_grows_where_reading_what_is_free_and_captures_cost_least():
    def cost(growth, bytes_per_token):
        return bytes_per_token * growth / 2 + decoders.CAPTURE_COST / growth

    for bytes_per_token in (10**5, 10**6, 10**7):
        growth = cache_growth(bytes_per_token)
        others = (cost(growth * factor, bytes_per_token) for factor in (0.5, 0.9, 1.1, 2))
        assert cost(growth, bytes_per_token) < min(others)
    assert cache_growth(10**12) == decoders.MIN_GROWTH


@torch.no_grad()
def test_steps_between_two_checks_count(model, monkeypatch):
    fixed = fixed_decoder(model, max_tokens=100)
    for tokens in TOKENS[:3]:
        fixed.step(tokens)
    monkeypatch.setattr(decoders, "CAPTURE_COST", 3 * fixed._bytes_per_row - 1)
    assert fixed.should_compact(2)


@torch.no_grad()
def test_completions_of_one_prompt_share_its_prefill(model):
    rows = torch.tensor([0, 0, 1, 1, 2, 2])
    plain, fixed = plain_decoder(model, rows), fixed_decoder(model, rows)
    for tokens in torch.cat([TOKENS, TOKENS.flip(1)], dim=1):
        torch.testing.assert_close(fixed.step(tokens), plain.step(tokens), atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_float32_weights_decode_in_bfloat16(model):
    """Under autocast keys are float32 and values bfloat16; both are cached in bfloat16."""
    with torch.autocast("cpu", torch.bfloat16):
        plain, fixed = plain_decoder(model), fixed_decoder(model)
        for tokens in TOKENS:
            torch.testing.assert_close(fixed.step(tokens), plain.step(tokens), atol=0.03, rtol=0.03)
    assert {t.dtype for layer in fixed._cache.layers for t in (layer.keys, layer.values)} == {torch.bfloat16}


@torch.no_grad()
def test_a_step_can_sample_from_its_logits(model):
    plain, fixed = plain_decoder(model), fixed_decoder(model)
    greedy = sampled = TOKENS[0]
    for step in range(5):
        greedy = plain.step(greedy).argmax(-1)
        sampled = fixed.step_and_sample(sampled, lambda logits: logits.argmax(-1))
        assert sampled.tolist() == greedy.tolist()
        if step == 2:
            rows = torch.tensor([2, 0])
            plain.keep(rows)
            fixed.keep(rows)
            greedy, sampled = greedy[rows], sampled[rows]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@torch.no_grad()
def test_a_captured_graph_gives_the_same_logits(model, monkeypatch):
    monkeypatch.setattr(decoders, "cache_growth", lambda _: 3)
    model.to("cuda")
    captured = fast_decoder(model, *read(model), EACH_ONCE.cuda(), max_tokens=len(TOKENS))
    plain = plain_decoder(model)
    assert isinstance(captured, GraphDecoder)
    for tokens in TOKENS.cuda():
        torch.testing.assert_close(captured.step(tokens), plain.step(tokens), atol=1e-4, rtol=1e-4)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@torch.no_grad()
def test_under_autocast_a_graph_reads_the_weights_of_its_time(model):
    model.to("cuda")
    seen = []
    for _ in range(2):
        with torch.autocast("cuda", torch.bfloat16):
            captured = fast_decoder(model, *read(model), EACH_ONCE.cuda(), max_tokens=len(TOKENS))
            plain = plain_decoder(model)
            for tokens in TOKENS.cuda():
                seen.append(captured.step(tokens).clone())
                torch.testing.assert_close(seen[-1], plain.step(tokens), atol=0.03, rtol=0.03)
        for parameter in model.parameters():
            parameter.mul_(1.5)
    assert not torch.allclose(seen[0], seen[len(TOKENS)], atol=0.1)
