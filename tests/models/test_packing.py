"""Shared rows by hand; then the scores of separate rows, for every architecture that is listed as tested."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from text2grad.models import packing
from text2grad.models.batching import Branch, TokenBatch, pad_right
from text2grad.models.loading import load_model
from text2grad.models.packing import (
    TESTED,
    TOKEN_IN_PAIRS,
    can_share_prompts,
    length_blocks,
    max_shared_row_length,
    pack_rows,
    pad_rows,
    shared_rows,
    token_in_pairs,
)
from text2grad.models.policy import Policy, Scores

CPU = torch.device("cpu")
SMALL: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 16,
    "head_dim": 8,
    "pad_token_id": 0,
    "bos_token_id": None,
    "eos_token_id": 1,
}
SPELLED_DIFFERENTLY: dict[str, dict[str, Any]] = {
    "gpt2": {"vocab_size": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 16},
    "opt": SMALL | {"ffn_dim": 48, "word_embed_proj_dim": 32},
    "mistral": SMALL | {"sliding_window": None},
}
# The rows of the first prompt together are longer than the models' 16 positions; no completion by itself is.
PROMPTS = [[5, 6, 7, 8, 9, 10, 11]] * 3 + [[12, 13]] * 2 + [[20]]
COMPLETIONS = [[30, 31, 32], [40], [33, 34, 35, 36, 37, 38, 39], [50], [51, 52], [9, 9, 9]]


# From the start, the middle and the end of completions; of the second of a shared row, of a single one, two of one.
BRANCHES = [Branch(0, 1, [41, 42]), Branch(5, 3, [8]), Branch(1, 0, [43, 44, 45]), Branch(0, 3, [46])]


def small_model(kind: str, attention: str = "sdpa", **changes: Any) -> PreTrainedModel:
    """Random weights large enough that attention matters."""
    torch.manual_seed(0)
    config = AutoConfig.for_model(kind, **(SPELLED_DIFFERENTLY.get(kind, SMALL) | changes))
    model: PreTrainedModel = AutoModelForCausalLM.from_config(config, attn_implementation=attention)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(8)
    return model.eval()


def policy_of(model: PreTrainedModel, lora: LoraConfig | None = None) -> Policy:
    policy = Policy(model, lora, keep_reference=False)
    torch.nn.init.normal_(policy.value_head.weight, generator=torch.Generator().manual_seed(1))
    return policy


def shared() -> TokenBatch:
    return pack_rows(PROMPTS, COMPLETIONS, [[0, 1, 2], [3, 4], [5]], CPU)


def apart() -> TokenBatch:
    return pad_right(PROMPTS, COMPLETIONS, CPU)


def test_branches_by_hand() -> None:
    branches = [Branch(1, 1, [8]), Branch(0, 1, [9, 10])]
    rows = pack_rows([[5, 6], [5, 6]], [[1, 2], [3, 4]], [[0, 1]], CPU, branches)
    assert rows.ids.tolist() == [[5, 6, 1, 2, 9, 10, 3, 4, 8]], "each completion is followed by its branches"
    assert rows.positions is not None
    assert rows.positions.tolist() == [0, 1, 2, 3, 3, 4, 2, 3, 3]
    assert rows.branches == (1, 0)
    before = rows.ids[rows.rows, rows.state_columns].tolist()
    assert list(zip(before, rows.ids[rows.rows, rows.columns].tolist(), strict=True)) == [
        *((6, 1), (1, 2)),
        *((1, 9), (9, 10)),
        *((6, 3), (3, 4)),
        (3, 8),
    ], "the state before each token"
    assert rows.scatter(rows.ids[rows.rows, rows.columns]).tolist() == [[1, 2], [3, 4], [9, 10], [8, 0]]
    mask = rows.model_inputs(torch.float32)["packed_rows"].mask
    sees = (mask == 0)[0, 0].int().tolist()
    assert [row[:9] for row in sees[3:9]] == [
        [1, 1, 1, 1, 0, 0, 0, 0, 0],
        [1, 1, 1, 0, 1, 0, 0, 0, 0],  # the first branch: not the token that it replaces
        [1, 1, 1, 0, 1, 1, 0, 0, 0],
        [1, 1, 0, 0, 0, 0, 1, 0, 0],  # the second completion: no branch of the first
        [1, 1, 0, 0, 0, 0, 1, 1, 0],
        [1, 1, 0, 0, 0, 0, 1, 0, 1],
    ]


def test_a_branch_may_start_before_all_tokens_of_a_completion_that_is_cut_away() -> None:
    rows = pack_rows([[5, 6]], [[]], [[0]], CPU, [Branch(0, 0, [7, 8])])
    assert rows.scatter(rows.ids[rows.rows, rows.columns]).tolist() == [[0, 0], [7, 8]]
    assert rows.ids[rows.rows, rows.state_columns].tolist() == [6, 7]


@pytest.mark.parametrize("kind", sorted(TESTED))
def test_branches_are_scored_like_completions_of_their_own(kind: str) -> None:
    policy = policy_of(small_model(kind))
    prefixes = [[*PROMPTS[b.sample], *COMPLETIONS[b.sample][: b.start]] for b in BRANCHES]
    own = policy(pad_right(prefixes, [b.ids for b in BRANCHES], CPU), 0.7)
    whole = policy(apart(), 0.7)
    lay_outs = {"packed": (pack_rows, [[0, 1, 2], [3, 4], [5]]), "padded": (pad_rows, [[i] for i in range(6)])}
    for lay_out, groups in lay_outs.values():
        rows = lay_out(PROMPTS, COMPLETIONS, groups, CPU, BRANCHES)
        scores = policy(rows, 0.7)
        assert_equal(Scores(*(lines[:6] for lines in scores)), whole)
        expected = Scores(*(lines[list(rows.branches)] for lines in own))
        assert_equal(
            Scores(*(lines[6:, : lines_own.shape[1]] for lines, lines_own in zip(scores, own, strict=True))), expected
        )


def test_shared_rows_by_hand() -> None:
    rows = pack_rows([[5, 6], [5, 6], [7]], [[1, 2], [3], [4]], [[0, 1], [2]], CPU)
    assert rows.ids.tolist() == [[5, 6, 1, 2, 3, 7, 4]], "no padding"
    assert rows.packed is not None
    assert rows.positions.tolist() == [0, 1, 2, 3, 2, 0, 1]
    assert (rows.packed.rows, rows.packed.width) == (3, 4), "attention has a row per completion"
    assert rows.packed.indices.tolist() == [4, 5, 2, 3, 6, 8, 9], "the prompt's own result is that of its last row"
    assert rows.packed.sources is not None
    sources = rows.packed.sources.view(3, 4).tolist()
    assert [sources[0], sources[1][:3], sources[2][:2]] == [[0, 1, 2, 3], [0, 1, 4], [5, 6]]
    assert rows.model_inputs(torch.float32)["packed_rows"].mask is None
    assert rows.ids[rows.rows, rows.columns].tolist() == [1, 2, 3, 4]
    assert rows.ids[rows.rows, rows.state_columns].tolist() == [6, 1, 6, 7], "first tokens follow the prompt's end"
    assert (rows.num_samples, rows.width) == (3, 2)
    assert rows.scatter(torch.tensor([1.0, 2.0, 3.0, 4.0])).tolist() == [[1, 2], [3, 0], [4, 0]]


def test_short_completions_of_a_long_prompt_share_a_masked_row() -> None:
    """Each with a copy of the prompt, they would have more pairs of tokens, though no future ones."""
    rows = pack_rows([[5] * 10] * 9, [[1, 2]] + [[3]] * 8, [list(range(9))], CPU)
    assert rows.packed is not None
    assert (rows.packed.rows, rows.packed.width, rows.packed.sources) == (1, 24, None)
    assert rows.packed.indices.tolist() == list(range(20))
    mask = rows.model_inputs(torch.float32)["packed_rows"].mask
    sees = (mask == 0)[0, 0].int().tolist()
    assert [row[8:14] for row in sees[8:14]] == [
        [1, 0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 0],
        [1, 1, 1, 1, 0, 0],
        [1, 1, 0, 0, 1, 0],
        [1, 1, 0, 0, 0, 1],
    ]
    assert all(sees[i][i] for i in range(24)), "padding sees itself: a row without anything to see would be NaN"
    assert set(mask.unique().tolist()) == {0.0, -math.inf}


@pytest.mark.parametrize("kind", sorted(TESTED))
def test_scores_do_not_depend_on_the_layout(kind: str) -> None:
    policy = policy_of(small_model(kind))
    assert policy.share_prompts
    assert shared().ids.shape[1] > 16
    expected = policy(apart(), 0.7)
    assert_equal(policy(shared(), 0.7), expected)
    assert_equal(policy(pack_rows(PROMPTS, COMPLETIONS, [[i] for i in range(6)], CPU), 0.7), expected)


@pytest.mark.parametrize(
    ("kind", "attention", "changes"),
    [
        ("mistral", "sdpa", {"sliding_window": 8}),
        ("qwen2", "sdpa", {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1}),
        ("gemma3_text", "sdpa", {}),  # every other layer has a sliding window
        ("bloom", "eager", {"n_layer": 2, "n_head": 4}),  # the distance in the row is part of the score
        ("mamba", "eager", {}),  # recurrent
        ("llama", "flex_attention", {}),  # would silently be replaced by another kernel
        ("llama", "eager", {}),
    ],
)
def test_other_models_use_one_row_per_completion(kind: str, attention: str, changes: dict[str, Any]) -> None:
    assert not can_share_prompts(small_model(kind, attention, **changes))


def test_rows_of_similar_lengths_are_blocks_where_that_spares_pairs() -> None:
    lengths = [9, 1, 9, 2, 2, 1, 9, 1] * 4
    first, second, third, fourth = length_blocks(lengths)
    assert [lengths[i] for i in first] == [1] * 8
    assert [lengths[i] for i in second] == [1] * 4 + [2] * 4
    assert sorted([*first, *second, *third, *fourth]) == list(range(32))
    assert length_blocks([9, 8] * 16) == [list(range(32))], "not worth more kernels"
    assert length_blocks(lengths[:8]) == [list(range(8))], "too few rows"


@pytest.mark.parametrize("attended", [1, 3])
def test_scores_and_gradients_do_not_depend_on_the_blocks(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch, attended: int
) -> None:
    monkeypatch.setattr(packing, "MIN_BLOCK", 1)
    monkeypatch.setattr(packing, "MAX_BLOCKS", attended)
    rows = shared()
    assert rows.packed is not None
    assert len(rows.packed.blocks) == attended
    found = []
    for batch in (rows, apart()):
        policy = policy_of(load_model(tiny_model))
        scores = policy(batch, 0.7)
        (scores.logprobs * torch.linspace(-1, 1, scores.logprobs.numel()).view_as(scores.logprobs)).sum().backward()
        found.append((scores, {name: p.grad for name, p in policy.trainable().items()}))
    assert_equal(found[0][0], found[1][0])
    torch.testing.assert_close(found[0][1], found[1][1], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("lora", [None, LoraConfig(r=4, lora_alpha=8, target_modules="all-linear")])
def test_gradients_do_not_depend_on_the_layout(tiny_model: Path, lora: LoraConfig | None, checkpointing: bool) -> None:
    found = []
    for rows in (shared(), apart()):
        torch.manual_seed(0)
        policy = policy_of(load_model(tiny_model), lora)
        if checkpointing:
            policy.model.gradient_checkpointing_enable({"use_reentrant": False})
            policy.model.enable_input_require_grads()
        policy.train()
        scores = policy(rows, 1.0)
        weights = torch.linspace(-1, 1, scores.logprobs.numel()).view_as(scores.logprobs)
        ((scores.logprobs + scores.entropy + scores.values) * weights).sum().backward()
        found.append({name: p.grad for name, p in policy.trainable().items()})
    assert found[0].keys() == found[1].keys()
    torch.testing.assert_close(found[0], found[1], atol=1e-5, rtol=1e-5)


def test_in_bfloat16_the_layouts_differ_by_rounding_alone(tiny_model: Path) -> None:
    policy = policy_of(load_model(tiny_model))
    exact = policy(apart(), 1.0).logprobs
    with torch.autocast("cpu", torch.bfloat16):
        rounded = [(policy(rows, 1.0).logprobs - exact).abs().max() for rows in (shared(), apart())]
    assert 0 < rounded[0] < 3 * rounded[1]


def test_bfloat16_weights_without_autocast(tiny_model: Path) -> None:
    policy = policy_of(load_model(tiny_model, torch.bfloat16), LoraConfig(r=4, target_modules="all-linear"))
    torch.testing.assert_close(policy(shared(), 1.0).logprobs, policy(apart(), 1.0).logprobs, atol=0.05, rtol=0)


def test_a_compiled_backbone_takes_shared_rows(tiny_model: Path) -> None:
    """As one graph, with and without gradients."""
    policy = policy_of(load_model(tiny_model))
    expected = policy(apart(), 1.0)
    policy.model.model.compile(backend="eager", dynamic=True)
    torch._dynamo.utils.counters.clear()
    assert_equal(policy(shared(), 1.0), expected)
    with torch.no_grad():
        assert_equal(policy(shared(), 1.0), expected)
    assert not torch._dynamo.utils.counters["graph_break"]


def test_gradients_of_copied_prompts_are_summed() -> None:
    """As autograd sums them, where those of padding are 0; groups of four, two and one completion."""
    torch.manual_seed(0)
    prompts = [[5] * 6] * 4 + [[6] * 3] * 2 + [[7] * 4]
    completions = [[9] * length for length in (4, 7, 5, 6, 8, 3, 9)]
    packed = pack_rows(prompts, completions, [[0, 1, 2, 3], [4, 5], [6]], torch.device("cpu")).packed
    assert packed is not None
    assert packed.sources is not None
    assert [places.shape for _, places in packed.copies] == [(3, 2), (6, 4)]
    tokens = torch.randn(1, 2, 6 + 22 + 3 + 11 + 4 + 9, 3, dtype=torch.float64, requires_grad=True)
    (rows,) = packed.pad(tokens)
    is_read = torch.zeros(rows.shape[0] * rows.shape[2], dtype=torch.bool)
    is_read[packed.indices] = True
    for _, places in packed.copies:
        is_read[places.flatten()] = True
    weights = torch.randn(rows.shape) * is_read.view(rows.shape[0], 1, rows.shape[2], 1)
    (ours,) = torch.autograd.grad((rows * weights).sum(), tokens)
    plain = tokens[0].transpose(0, 1).index_select(0, packed.sources)
    (expected,) = torch.autograd.grad((plain * weights.transpose(1, 2).flatten(0, 1)).sum(), tokens)
    torch.testing.assert_close(ours, expected)


def test_samples_are_grouped_by_their_prompt() -> None:
    prompts = [[1] * 9, [2] * 9, [1] * 9, [3] * 9, [1] * 9]
    assert shared_rows(prompts, [[7]] * 5, range(5), 100) == [[0, 2, 4], [1], [3]]
    assert shared_rows(prompts, [[7]] * 5, [4, 3, 2], 100) == [[4, 2], [3]]


def test_a_row_over_the_budget_is_split_down_to_single_completions() -> None:
    prompts, completions = [[1] * 20] * 4, [[2] * 10] * 4
    assert shared_rows(prompts, completions, range(4), 60) == [[0, 1, 2, 3]]
    assert shared_rows(prompts, completions, range(4), 59) == [[0, 1, 2], [3]]
    assert shared_rows(prompts, completions, range(4), 40) == [[0, 1], [2, 3]]
    assert shared_rows(prompts, completions, range(4), 5) == [[0], [1], [2], [3]]


def test_under_a_mask_long_completions_of_a_short_prompt_stay_apart() -> None:
    """Together they would save 10 tokens and look at a million pairs more."""
    forked = [Branch(0, 0, [7])]
    assert shared_rows([[1] * 10] * 3, [[2] * 1000] * 3, range(3), 10**6, forked) == [[0], [1], [2]]
    assert shared_rows([[1] * 1000] * 3, [[2] * 700] * 3, range(3), 10**6, forked) == [[0, 1], [2]]
    assert shared_rows([[1] * 300] * 9, [[2] * 90] * 9, range(9), 10**6) == [[0, 1, 2, 3, 4, 5, 6], [7, 8]]


def test_without_a_mask_only_the_budget_limits_a_row() -> None:
    assert shared_rows([[1] * 300] * 9, [[2] * 100] * 9, range(9), 10**6) == [list(range(9))]
    assert shared_rows([[1] * 300] * 9, [[2] * 100] * 9, range(9), 1000) == [list(range(7)), [7, 8]]


@pytest.mark.parametrize("prompt", [8, 100, 250, 3000])
def test_no_other_row_length_is_cheaper_per_completion(prompt: int) -> None:
    def cost_per_token(row: int) -> float:
        return row * (TOKEN_IN_PAIRS + row) / (row - prompt)

    best = cost_per_token(max_shared_row_length(prompt))
    assert best <= min(cost_per_token(row) for row in range(prompt + 1, 4 * prompt + 2000)) * 1.0001
    assert max_shared_row_length(prompt) <= 2 * prompt + TOKEN_IN_PAIRS // 2


def assert_equal(ours: Scores, theirs: Scores) -> None:
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


def test_a_wider_model_has_longer_rows(tiny_model: Path) -> None:
    model = load_model(tiny_model)
    assert token_in_pairs(model) == TOKEN_IN_PAIRS
    model.config.hidden_size = 2048
    assert token_in_pairs(model) == 4096
    prompts, completions, forked = [[1] * 300] * 8, [[2] * 250] * 8, [Branch(0, 0, [7])]
    assert [len(row) for row in shared_rows(prompts, completions, range(8), 10**6, forked)] == [2, 2, 2, 2]
    assert [len(row) for row in shared_rows(prompts, completions, range(8), 10**6, forked, pairs=4096)] == [4, 4]
