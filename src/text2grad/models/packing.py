"""How answers are laid out for scoring and update passes: the one place that decides it.

A prompt with several answers is computed once: one row holds the prompt and then its answers, and a mask keeps the
answers apart. Rows lie one after the other without padding; only attention pads them (see flat.py). Where the model
does not allow that, each answer has its own padded row.

The mask of shared rows has `rows x longest row x longest row` entries of the compute dtype, once for all layers. A row
of several answers is never longer than the token budget, nor than twice its prompt and 512 tokens
(`longest_shared_row`), whatever the number of answers; padding never adds more than half of the budget (`STRETCH`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from peft import PeftModel
from torch import Tensor
from transformers import PreTrainedModel

from text2grad.distributed.processes import SINGLE_PROCESS, Processes
from text2grad.models.batching import Flat, TokenRows, aligned, by_token_budget, pad_right
from text2grad.models.flat_attention import NAME as FLAT

# Architectures whose scores are tested to be the same in shared rows: positions come from `position_ids` alone, and
# masks of four dimensions and further arguments reach attention. Others keep a row for each answer, which is slower.
TESTED = frozenset(
    ("gemma", "gpt2", "gpt_neox", "llama", "mistral", "olmo2", "opt", "phi3", "qwen2", "qwen3", "smollm3", "starcoder2")
)
# A token's way through the other layers costs about as much as attention over this many pairs of tokens: twice the
# width of a model, and models are rarely narrower than half of this.
TOKEN_IN_PAIRS = 1024
STRETCH = 1.5  # padded tokens that attention may see, as a multiple of the token budget

Row = list[int]  # the answers that share one row
MicroBatch = tuple[list[int], TokenRows]  # which answers, and their rows
IDLE: Row = [0]  # the row of a micro-batch without answers of its own


def can_share_prompts(model: PreTrainedModel | PeftModel) -> bool:
    """Whether answers to one prompt may share a row: a tested architecture whose every layer sees all tokens."""
    config = model.config
    layers = getattr(config, "layer_types", None) or []
    return (
        config.model_type in TESTED
        and config._attn_implementation in ("sdpa", FLAT)
        and all(kind == "full_attention" for kind in layers)
        and getattr(config, "sliding_window", None) is None
    )


def micro_batches(
    prompts: Sequence[Sequence[int]],
    completions: Sequence[Sequence[int]],
    samples: Sequence[int],
    max_tokens: int,
    share_prompts: bool,
    device: torch.device,
    processes: Processes = SINGLE_PROCESS,
) -> list[MicroBatch]:
    """This process's share of the chosen samples in micro-batches, of at most `max_tokens` tokens or of one row.

    Each is (samples, rows): `scatter` of the rows gives one line for each of these samples, in their order. A row stays
    whole, so the processes together compute what one alone would. Where all have to take equally many passes, a process
    that has fewer gets idle ones: no samples, and the row `IDLE`, which counts for nothing.
    """
    if share_prompts:
        rows, stretch, lay_out = shared_rows(prompts, completions, samples, max_tokens), STRETCH, lay_flat
    else:
        rows, stretch, lay_out = [[i] for i in samples], 1.0, lay_padded
    lengths = [_row_length(prompts, completions, row) for row in rows]
    own = processes.rows(lengths)
    planned = by_token_budget([lengths[i] for i in own], max_tokens, stretch)
    batches = processes.in_step([[rows[own[i]] for i in batch] for batch in planned], idle=[])
    return [
        ([i for row in batch for i in row], lay_out(prompts, completions, batch or [IDLE], device)) for batch in batches
    ]


def shared_rows(
    prompts: Sequence[Sequence[int]], completions: Sequence[Sequence[int]], samples: Sequence[int], max_tokens: int
) -> list[Row]:
    """Samples with the same prompt, as many a row as fit `max_tokens` and `longest_shared_row`."""
    rows: list[Row] = []
    latest: dict[tuple[int, ...], Row] = {}
    for i in samples:
        prompt = tuple(prompts[i])
        limit = min(max_tokens, longest_shared_row(len(prompt)))
        row = latest.get(prompt)
        if row is not None and _row_length(prompts, completions, [*row, i]) <= limit:
            row.append(i)
        else:
            latest[prompt] = [i]
            rows.append(latest[prompt])
    return rows


def longest_shared_row(prompt: int) -> int:
    """Tokens of the row that is cheapest for each of its answers, given the tokens of its prompt.

    A row of L tokens costs L * (TOKEN_IN_PAIRS + L). With p tokens of prompt and answers of c each it holds (L - p) / c
    of them; the cost of an answer is least at L = p + sqrt(p * (p + TOKEN_IN_PAIRS)), whatever c is. Beyond that,
    attention between answers that do not see each other costs more than another copy of the prompt.
    """
    return prompt + math.isqrt(prompt * (prompt + TOKEN_IN_PAIRS))


def lay_padded(
    prompts: Sequence[Sequence[int]], completions: Sequence[Sequence[int]], rows: Sequence[Row], device: torch.device
) -> TokenRows:
    """One micro-batch of rows with one sample each."""
    return pad_right([prompts[i] for (i,) in rows], [completions[i] for (i,) in rows], device)


def lay_flat(
    prompts: Sequence[Sequence[int]], completions: Sequence[Sequence[int]], rows: Sequence[Row], device: torch.device
) -> TokenRows:
    """One micro-batch without padding, its samples numbered in the order of the rows.

    A row is a prompt and all of its answers; every prompt and every answer must hold at least one token.
    """
    lengths = [_row_length(prompts, completions, row) for row in rows]
    shared = any(len(row) > 1 for row in rows)
    width = aligned(max(lengths)) if shared else max(lengths)
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
        last = len(ids) - 1
        for branch, i in enumerate(row, 1):
            slots = torch.arange(len(completions[i]))
            columns = len(ids) + slots
            branches[number, columns - start] = branch
            positions.append(len(prompt) + slots)
            before = torch.where(slots == 0, last, columns - 1)
            tokens.append(torch.stack([columns, before, torch.full_like(slots, len(tokens)), slots]))
            ids += completions[i]
    columns, before, samples, slots = torch.cat(tokens, dim=1).to(device)
    return TokenRows(
        ids=torch.tensor([ids], device=device),
        rows=torch.zeros_like(columns),
        columns=columns,
        before=before,
        samples=samples,
        slots=slots,
        count=len(tokens),
        width=max(len(completions[i]) for row in rows for i in row),
        flat=Flat(
            positions=torch.cat(positions).to(device),
            places=(branches >= 0).flatten().nonzero().squeeze(1).to(device),
            branches=branches.to(device) if shared else None,
            rows=len(rows),
            width=width,
        ),
    )


def _row_length(prompts: Sequence[Sequence[int]], completions: Sequence[Sequence[int]], row: Row) -> int:
    return len(prompts[row[0]]) + sum(len(completions[i]) for i in row)
