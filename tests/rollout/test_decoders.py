"""Two decoders, one answer."""

from __future__ import annotations

import pytest
import torch
from peft import LoraConfig, get_peft_model

from text2grad.models.batching import pad_left
from text2grad.models.loading import load_model
from text2grad.rollout import decoders
from text2grad.rollout.cache import preallocated_cache
from text2grad.rollout.decoders import GraphDecoder, GrowingDecoder, can_be_captured, start
from text2grad.rollout.fast import rms_norm as norms

PROMPTS = [[5, 6, 7, 8], [9, 10], [11, 12, 13]]
TOKENS = torch.tensor([[3, 4, 5], [6, 7, 8], [9, 10, 11], [12, 13, 14], [15, 16, 17], [18, 19, 20], [21, 22, 23]])
EACH_ONCE = torch.arange(3)


@pytest.fixture
def model(tiny_model):
    return load_model(tiny_model).eval()


def read(model):
    ids, mask = pad_left(PROMPTS, pad_id=0, device=torch.device("cpu"))
    cache = preallocated_cache(model.config)
    with torch.no_grad():
        model(
            input_ids=ids, attention_mask=mask, position_ids=(mask.cumsum(-1) - 1).clamp(min=0), past_key_values=cache
        )
    return cache, mask


@torch.no_grad()
def test_a_decoder_of_fixed_places_gives_the_logits_of_the_growing_one(model, monkeypatch):
    monkeypatch.setattr(decoders, "ROOM", 3)  # seven steps lay it out twice
    growing = GrowingDecoder(model, *read(model), in_groups=False)
    fixed = GraphDecoder(model, *read(model), EACH_ONCE, longest=len(TOKENS), capture=False)
    for tokens in TOKENS:
        torch.testing.assert_close(fixed.step(tokens), growing.step(tokens), atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_attention_in_groups_gives_the_same_logits(model):
    plain, grouped = (GrowingDecoder(model, *read(model), in_groups) for in_groups in (False, True))
    for tokens in TOKENS:
        torch.testing.assert_close(grouped.step(tokens), plain.step(tokens), atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_a_step_in_fixed_places_computes_every_norm_in_one_kernel(model, monkeypatch):
    computed, rms_norm = [], norms.rms_norm

    def noted(norm, states):
        computed.append(norm)
        return rms_norm(norm, states)

    monkeypatch.setattr(norms, "rms_norm", noted)
    GraphDecoder(model, *read(model), EACH_ONCE, longest=1, capture=False).step(TOKENS[0])
    assert len(computed) == 2 * model.config.num_hidden_layers + 1


def test_models_that_ask_the_host_in_a_step_are_not_captured(model):
    assert can_be_captured(model)
    assert can_be_captured(get_peft_model(model, LoraConfig(target_modules=["q_proj"])))
    model.config.rope_parameters = {"rope_type": "dynamic", "factor": 2.0}
    assert not can_be_captured(model)
    model.config.rope_parameters = {"full_attention": {"rope_type": "longrope"}}
    assert not can_be_captured(model)
    model.config.rope_parameters = {"full_attention": {"rope_type": "default"}}
    assert can_be_captured(model)
    model._can_compile_fullgraph = False  # what the library says of its family
    assert not can_be_captured(model)


@torch.no_grad()
def test_rows_leave_both_alike(model):
    growing = GrowingDecoder(model, *read(model), in_groups=False)
    fixed = GraphDecoder(model, *read(model), EACH_ONCE, longest=len(TOKENS), capture=False)
    rows = torch.tensor([0, 2])
    for step, tokens in enumerate(TOKENS):
        if step == 2:
            growing.keep(rows)
            fixed.keep(rows)
        given = tokens if step < 2 else tokens[rows]
        torch.testing.assert_close(fixed.step(given), growing.step(given), atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_rows_are_dropped_when_as_much_was_read_in_vain_as_a_graph_costs(model, monkeypatch):
    fixed = GraphDecoder(model, *read(model), EACH_ONCE, longest=100, capture=False)
    layers, heads, width = model.config.num_hidden_layers, model.config.num_key_value_heads, model.config.head_dim
    row = layers * 2 * heads * width * 104 * 4  # bytes: keys and values of 4 + 100 tokens in float32
    monkeypatch.setattr(decoders, "GRAPH_COST", 4 * row)
    for tokens, going, pays in zip(TOKENS, (3, 2, 2, 2, 1, 1), (False, False, False, False, True, True), strict=False):
        fixed.step(tokens)
        assert fixed.pays_to_keep(going) is pays
    fixed.keep(torch.tensor([1]))
    fixed.step(TOKENS[0][:1])
    assert not fixed.pays_to_keep(1), "what was wasted before is paid for"


@torch.no_grad()
def test_steps_between_two_questions_count(model, monkeypatch):
    fixed = GraphDecoder(model, *read(model), EACH_ONCE, longest=100, capture=False)
    for tokens in TOKENS[:3]:
        fixed.step(tokens)
    monkeypatch.setattr(decoders, "GRAPH_COST", 3 * fixed._row_bytes - 1)
    assert fixed.pays_to_keep(2)


@torch.no_grad()
def test_answers_to_one_prompt_share_its_states_in_fixed_places_too(model):
    cache, mask = read(model)
    rows = torch.tensor([0, 0, 1, 1, 2, 2])
    fixed = GraphDecoder(model, cache, mask, rows, longest=len(TOKENS), capture=False)
    cache.batch_select_indices(rows)
    growing = GrowingDecoder(model, cache, mask[rows], in_groups=False)
    for tokens in torch.cat([TOKENS, TOKENS.flip(1)], dim=1):
        torch.testing.assert_close(fixed.step(tokens), growing.step(tokens), atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_float32_weights_decode_in_bfloat16(model):
    """Under autocast keys come as float32 and values as bfloat16; both are kept in bfloat16."""
    with torch.autocast("cpu", torch.bfloat16):
        growing = GrowingDecoder(model, *read(model), in_groups=False)
        fixed = GraphDecoder(model, *read(model), EACH_ONCE, longest=len(TOKENS), capture=False)
        for tokens in TOKENS:
            torch.testing.assert_close(fixed.step(tokens), growing.step(tokens), atol=0.03, rtol=0.03)
    assert {t.dtype for layer in fixed._cache.layers for t in (layer.keys, layer.values)} == {torch.bfloat16}


@torch.no_grad()
def test_a_step_gives_the_logits_of_a_plain_forward_pass(model):
    growing = GrowingDecoder(model, *read(model), in_groups=False)
    logits = growing.step(torch.tensor([20, 21, 22]))
    for row, (prompt, token) in enumerate(zip(PROMPTS, (20, 21, 22), strict=True)):
        plain = model(input_ids=torch.tensor([[*prompt, token]])).logits[0, -1]
        torch.testing.assert_close(logits[row], plain, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_answers_to_one_prompt_share_its_reading(model):
    ids, mask = pad_left(PROMPTS, pad_id=0, device=torch.device("cpu"))
    decoder, logits = start(model, ids, mask, num_generations=2, longest=4, graphs=True)
    assert isinstance(decoder, GrowingDecoder)  # there is no graph on a CPU
    assert logits.shape[0] == 6
    torch.testing.assert_close(logits[0], logits[1])
    after = decoder.step(torch.tensor([3, 4, 3, 4, 3, 4]))
    assert not torch.allclose(after[0], after[1])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@torch.no_grad()
def test_a_captured_graph_gives_the_same_logits(model, monkeypatch):
    monkeypatch.setattr(decoders, "ROOM", 3)
    model.to("cuda")
    ids, mask = pad_left(PROMPTS, pad_id=0, device=torch.device("cuda"))
    captured, _ = start(model, ids, mask, 1, longest=len(TOKENS), graphs=True)
    growing, _ = start(model, ids, mask, 1, longest=len(TOKENS), graphs=False)
    assert isinstance(captured, GraphDecoder)
    for tokens in TOKENS.cuda():
        torch.testing.assert_close(captured.step(tokens), growing.step(tokens), atol=1e-4, rtol=1e-4)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@torch.no_grad()
def test_under_autocast_a_graph_reads_the_weights_of_its_time(model):
    model.to("cuda")
    ids, mask = pad_left(PROMPTS, pad_id=0, device=torch.device("cuda"))
    seen = []
    for _ in range(2):
        with torch.autocast("cuda", torch.bfloat16):
            captured, _ = start(model, ids, mask, 1, longest=len(TOKENS), graphs=True)
            growing, _ = start(model, ids, mask, 1, longest=len(TOKENS), graphs=False)
            for tokens in TOKENS.cuda():
                seen.append(captured.step(tokens).clone())
                torch.testing.assert_close(seen[-1], growing.step(tokens), atol=0.03, rtol=0.03)
        for parameter in model.parameters():
            parameter.mul_(1.5)
    assert not torch.allclose(seen[0], seen[len(TOKENS)], atol=0.1)
