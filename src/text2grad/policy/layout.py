"""How answers are laid out for scoring and update passes: the one place that decides it.

A prompt with several answers is computed once: one row holds the prompt and then its answers, and a mask keeps the
answers apart. Where the model does not allow that, or it would cost more than it saves, each answer has its own row.

The mask of shared rows has `rows x longest row x longest row` entries of the compute dtype, once for all layers: the
tokens of the micro-batch times its longest row. A row of several answers is never longer than the token budget, nor
than twice its prompt and 512 tokens (`longest_shared_row`), whatever the number of answers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from peft import PeftModel
from torch import Tensor
from transformers import PreTrainedModel

from text2grad.policy.batching import Padded, Sharing, by_token_budget, pad_right
from text2grad.policy.processes import ALONE, Processes

# Architectures whose scores are tested to be the same in shared rows: positions come from `position_ids` alone, and a
# mask of four dimensions is taken as it is. Others keep a row for each answer, which is slower and always right.
TESTED = frozenset(
    ("gemma", "gpt2", "gpt_neox", "llama", "mistral", "olmo2", "opt", "phi3", "qwen2", "qwen3", "smollm3", "starcoder2")
)
# A token's way through the other layers costs about as much as attention over this many pairs of tokens: twice the
# width of a model, and models are rarely narrower than half of this.
TOKEN_IN_PAIRS = 1024
MULTIPLE = 8  # fused attention wants masks whose rows are aligned

Row = list[int]  # the answers that share one row
MicroBatch = tuple[list[int], Padded]  # which answers, and their rows
IDLE: Row = [0]  # the row of a micro-batch without answers of its own


def can_share_prompts(model: PreTrainedModel | PeftModel) -> bool:
    """Whether answers to one prompt may share a row: a tested architecture whose every layer sees all tokens."""
    config = model.config
    layers = getattr(config, "layer_types", None) or []
    return (
        config.model_type in TESTED
        and config._attn_implementation in ("sdpa", "eager")
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
    processes: Processes = ALONE,
) -> list[MicroBatch]:
    """This process's share of the chosen samples in micro-batches, of at most `max_tokens` padded tokens or of one row.

    Each is (samples, rows): `scatter` of the rows gives one line for each of these samples, in their order. A row stays
    whole, so the processes together compute what one alone would. Where all have to take equally many passes, a process
    that has fewer gets idle ones: no samples, and the row `IDLE`, which counts for nothing.
    """
    rows = shared_rows(prompts, completions, samples, max_tokens) if share_prompts else [[i] for i in samples]
    lengths = [_row_length(prompts, completions, row) for row in rows]
    if any(len(row) > 1 for row in rows):
        lengths = [_aligned(length) for length in lengths]  # beside a shared row the others are padded like it
    own = processes.rows(lengths)
    planned = by_token_budget([lengths[i] for i in own], max_tokens)
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
        if row is not None and _aligned(_row_length(prompts, completions, [*row, i])) <= limit:
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


def lay_out(
    prompts: Sequence[Sequence[int]], completions: Sequence[Sequence[int]], rows: Sequence[Row], device: torch.device
) -> Padded:
    """One micro-batch, its samples numbered in the order of the rows."""
    if all(len(row) == 1 for row in rows):
        return pad_right([prompts[i] for (i,) in rows], [completions[i] for (i,) in rows], device)
    return pad_shared([prompts[row[0]] for row in rows], [[completions[i] for i in row] for row in rows], device)


def pad_shared(
    prompts: Sequence[Sequence[int]], answers: Sequence[Sequence[Sequence[int]]], device: torch.device
) -> Padded:
    """Rows of a prompt and all of its answers, one after the other; the width is a multiple of 8.

    Every prompt and every answer must hold at least one token.
    """
    lengths = [len(p) + sum(map(len, own)) for p, own in zip(prompts, answers, strict=True)]
    shape = len(prompts), _aligned(max(lengths))
    ids, positions = torch.zeros(shape, dtype=torch.long), torch.zeros(shape, dtype=torch.long)
    branches = torch.full(shape, -1)
    places: list[Tensor] = []
    for row, (prompt, own) in enumerate(zip(prompts, answers, strict=True)):
        ids[row, : lengths[row]] = torch.tensor([*prompt, *(token for answer in own for token in answer)])
        branches[row, : len(prompt)] = 0
        positions[row, : len(prompt)] = torch.arange(len(prompt))
        start = len(prompt)
        for branch, answer in enumerate(own, 1):
            slots = torch.arange(len(answer))
            columns = start + slots
            before = torch.where(slots == 0, len(prompt) - 1, columns - 1)
            branches[row, columns] = branch
            positions[row, columns] = len(prompt) + slots
            places.append(
                torch.stack([torch.full_like(slots, row), columns, before, torch.full_like(slots, len(places)), slots])
            )
            start += len(answer)
    rows, columns, before, samples, slots = torch.cat(places, dim=1).to(device)
    return Padded(
        ids=ids.to(device),
        rows=rows,
        columns=columns,
        before=before,
        samples=samples,
        slots=slots,
        count=len(places),
        width=max(len(answer) for own in answers for answer in own),
        sharing=Sharing(branches.to(device), positions.to(device)),
    )


def _row_length(prompts: Sequence[Sequence[int]], completions: Sequence[Sequence[int]], row: Row) -> int:
    return len(prompts[row[0]]) + sum(len(completions[i]) for i in row)


def _aligned(length: int) -> int:
    return -(-length // MULTIPLE) * MULTIPLE
