"""Row layouts of scoring and update passes: packed rows that share a prompt, or padded rows.

A prompt with several completions is computed once: one row holds the prompt and then its completions, and a mask keeps
the completions apart. Rows are packed without padding; only attention pads them (packed_attention.py). Where the model
does not support that, each completion has its own padded row.

The mask of shared rows has `rows x longest row x longest row` entries of the compute dtype, once for all layers. A row
of several completions is never longer than the token budget, nor than twice its prompt and 512 tokens
(`max_shared_row_length`); padding never adds more than half of the budget (`MAX_PADDING_RATIO`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from peft import PeftModel
from torch import Tensor
from transformers import PreTrainedModel

from text2grad.models.batching import TokenBatch, TokenIds, pad_right, round_up_to_8
from text2grad.models.packed_attention import NAME as PACKED
from text2grad.models.packed_attention import PackedRows

# Architectures whose scores are tested to be the same in shared rows: positions come from `position_ids` alone, and
# 4-D masks and further arguments reach attention. Others use one row per completion, which is slower.
TESTED = frozenset(
    ("gemma", "gpt2", "gpt_neox", "llama", "mistral", "olmo2", "opt", "phi3", "qwen2", "qwen3", "smollm3", "starcoder2")
)
# The other layers cost per token about as much as attention over this many pairs of tokens: twice the width of a model,
# and models are rarely narrower than half of this.
TOKEN_IN_PAIRS = 1024
MAX_PADDING_RATIO = 1.5  # padded tokens that attention may see, as a multiple of the token budget

Row = list[int]  # indices of the samples that share a row


def can_share_prompts(model: PreTrainedModel | PeftModel) -> bool:
    """Return whether completions of one prompt may share a row: a tested architecture with full attention only."""
    config = model.config
    layers = getattr(config, "layer_types", None) or []
    return (
        config.model_type in TESTED
        and config._attn_implementation in ("sdpa", PACKED)
        and all(kind == "full_attention" for kind in layers)
        and getattr(config, "sliding_window", None) is None
    )


def shared_rows(prompts: TokenIds, completions: TokenIds, samples: Sequence[int], max_tokens: int) -> list[Row]:
    """Group samples with the same prompt, as many per row as fit `max_tokens` and `max_shared_row_length`."""
    rows: list[Row] = []
    latest: dict[tuple[int, ...], Row] = {}
    for i in samples:
        prompt = tuple(prompts[i])
        limit = min(max_tokens, max_shared_row_length(len(prompt)))
        row = latest.get(prompt)
        if row is not None and row_length(prompts, completions, [*row, i]) <= limit:
            row.append(i)
        else:
            latest[prompt] = [i]
            rows.append(latest[prompt])
    return rows


def max_shared_row_length(prompt_length: int) -> int:
    """Return the row length that is cheapest per completion.

    A row of L tokens costs L * (TOKEN_IN_PAIRS + L). With p prompt tokens and completions of c tokens it holds
    (L - p) / c of them; the cost per completion is least at L = p + sqrt(p * (p + TOKEN_IN_PAIRS)), whatever c is.
    Beyond that, masked attention between completions costs more than another copy of the prompt.
    """
    return prompt_length + math.isqrt(prompt_length * (prompt_length + TOKEN_IN_PAIRS))


def pad_rows(prompts: TokenIds, completions: TokenIds, rows: Sequence[Row], device: torch.device) -> TokenBatch:
    """Return one padded micro-batch of rows with one sample each."""
    return pad_right([prompts[i] for (i,) in rows], [completions[i] for (i,) in rows], device)


def pack_rows(prompts: TokenIds, completions: TokenIds, rows: Sequence[Row], device: torch.device) -> TokenBatch:
    """Return one packed micro-batch, its samples in the order of the rows.

    A row is a prompt and all of its completions; each of them must hold at least one token.
    """
    lengths = [row_length(prompts, completions, row) for row in rows]
    shared = any(len(row) > 1 for row in rows)
    width = round_up_to_8(max(lengths)) if shared else max(lengths)
    branches = torch.full((len(rows), width), -1)
    ids: list[int] = []
    positions: list[Tensor] = []
    tokens: list[Tensor] = []
    for number, row in enumerate(rows):
        prompt = prompts[row[0]]
        start = len(ids)
        ids += prompt
        positions.append(torch.arange(len(prompt)))
        branches[number, : len(prompt)] = 0
        prompt_end = len(ids) - 1
        for branch, i in enumerate(row, 1):
            token_indices = torch.arange(len(completions[i]))
            columns = len(ids) + token_indices
            branches[number, columns - start] = branch
            positions.append(len(prompt) + token_indices)
            state_columns = torch.where(token_indices == 0, prompt_end, columns - 1)
            tokens.append(
                torch.stack([columns, state_columns, torch.full_like(token_indices, len(tokens)), token_indices])
            )
            ids += completions[i]
    columns, state_columns, samples, token_indices = torch.cat(tokens, dim=1).to(device)
    return TokenBatch(
        ids=torch.tensor([ids], device=device),
        rows=torch.zeros_like(columns),
        columns=columns,
        state_columns=state_columns,
        samples=samples,
        token_indices=token_indices,
        num_samples=len(tokens),
        width=max(len(completions[i]) for row in rows for i in row),
        packed=PackedRows(
            indices=(branches >= 0).flatten().nonzero().squeeze(1).to(device),
            rows=len(rows),
            width=width,
            branches=branches.to(device) if shared else None,
        ),
        positions=torch.cat(positions).to(device),
    )


def row_length(prompts: TokenIds, completions: TokenIds, row: Row) -> int:
    """Return the tokens of a row: its prompt once, and all of its completions."""
    return len(prompts[row[0]]) + sum(len(completions[i]) for i in row)
