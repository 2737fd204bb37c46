"""Row layouts of scoring and update passes: packed rows that share a prompt, or padded rows.

A prompt with several completions is computed once: one row holds the prompt and then its completions. Only attention
needs to keep them apart: by a mask, or by a row for each completion with a copy of the prompt's keys, values and
queries, which needs no mask and is cheaper where completions are not much shorter than their prompt. Branches of a
completion follow it in its row and continue its tokens, one level deeper, so that a correction costs its own tokens
only. Rows are packed without padding; only attention pads them (packed_attention.py). Where the model does not support
that, each completion and each branch has its own padded row.

The mask of shared rows has `rows x longest row x longest row` entries of the compute dtype, once for all layers. A row
of several completions is never longer than the token budget, nor under a mask than twice its prompt and the width of
the model (`max_shared_row_length`); padding never adds more than half of the budget (`MAX_PADDING_RATIO`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import torch
from peft import PeftModel
from torch import Tensor
from transformers import PreTrainedModel

from text2grad.models.batching import Branch, TokenBatch, TokenIds, pad_right, round_up_to_8
from text2grad.models.packed_attention import NAME as PACKED
from text2grad.models.packed_attention import PackedRows

# Architectures whose scores are tested to be the same in shared rows: positions come from `position_ids` alone, and
# 4-D masks and further arguments reach attention. Others use one row per completion, which is slower.
TESTED = frozenset(
    ("gemma", "gpt2", "gpt_neox", "llama", "mistral", "olmo2", "opt", "phi3", "qwen2", "qwen3", "smollm3", "starcoder2")
)
TOKEN_IN_PAIRS = 1024  # at least, see `token_in_pairs`
LONG_COMPLETION = 3  # completions of a third of their prompt or more have attention of their own (`pack_rows`)
MAX_BLOCKS, MIN_BLOCK = 4, 8  # of rows of such completions: `length_blocks`
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


def token_in_pairs(model: PreTrainedModel | PeftModel) -> int:
    """Return over how many pairs of tokens masked attention costs about as much as the other layers cost per token.

    Twice the width of the model: six times the width in operations, at a third of the speed of large matrices.
    """
    return max(TOKEN_IN_PAIRS, 2 * int(model.config.hidden_size))


def shared_rows(
    prompts: TokenIds,
    completions: TokenIds,
    samples: Sequence[int],
    max_tokens: int,
    branches: Sequence[Branch] = (),
    pairs: int = TOKEN_IN_PAIRS,
) -> list[Row]:
    """Group samples with the same prompt, as many per row as fit `max_tokens`, and `max_shared_row_length` where
    attention is masked: rows with branches, and short completions of a long prompt. pairs: see `token_in_pairs`.
    """
    own_tokens = sample_lengths(completions, branches)
    groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for i in samples:
        groups[tuple(prompts[i])].append(i)
    limits = {
        prompt: max_tokens
        if not branches and sum(own_tokens[i] for i in group) * LONG_COMPLETION >= len(prompt) * len(group)
        else min(max_tokens, max_shared_row_length(len(prompt), pairs))
        for prompt, group in groups.items()
    }
    rows: list[Row] = []
    latest: dict[tuple[int, ...], Row] = {}
    for i in samples:
        prompt = tuple(prompts[i])
        row = latest.get(prompt)
        if row is not None and row_length(prompts, own_tokens, [*row, i]) <= limits[prompt]:
            row.append(i)
        else:
            latest[prompt] = [i]
            rows.append(latest[prompt])
    return rows


def max_shared_row_length(prompt_length: int, pairs: int = TOKEN_IN_PAIRS) -> int:
    """Return the row length that is cheapest per completion.

    A row of L tokens costs L * (pairs + L). With p prompt tokens and completions of c tokens it holds
    (L - p) / c of them; the cost per completion is least at L = p + sqrt(p * (p + pairs)), whatever c is.
    Beyond that, masked attention between completions costs more than another copy of the prompt.
    """
    return prompt_length + math.isqrt(prompt_length * (prompt_length + pairs))


def pad_rows(
    prompts: TokenIds, completions: TokenIds, rows: Sequence[Row], device: torch.device, branches: Sequence[Branch] = ()
) -> TokenBatch:
    """Return one padded micro-batch of rows with one sample each, and of the branches of these samples."""
    samples = [i for (i,) in rows]
    chosen = [k for i in samples for k in branches_by_sample(branches)[i]]
    forked = [branches[k] for k in chosen]
    return pad_right(
        [prompts[i] for i in samples] + [[*prompts[b.sample], *completions[b.sample][: b.start]] for b in forked],
        [completions[i] for i in samples] + [branch.ids for branch in forked],
        device,
        branches=tuple(chosen),
    )


def pack_rows(
    prompts: TokenIds, completions: TokenIds, rows: Sequence[Row], device: torch.device, branches: Sequence[Branch] = ()
) -> TokenBatch:
    """Return one packed micro-batch, its samples in the order of the rows, then their branches in that order.

    A row is a prompt and all of its completions, each followed by its branches. Attention sees such rows with a mask,
    or, where that has fewer pairs of tokens and there are no branches, each completion beside a copy of its prompt.
    """
    by_sample = branches_by_sample(branches)
    own_tokens = sample_lengths(completions, branches)
    forked = any(by_sample[i] for row in rows for i in row)
    shared = forked or any(len(row) > 1 for row in rows)
    longest = max(row_length(prompts, own_tokens, row) for row in rows)
    width = round_up_to_8(longest) if shared else longest
    numbers = torch.full((len(rows), width), -1)
    parents, forks = torch.zeros_like(numbers), torch.zeros_like(numbers)
    num_samples = sum(map(len, rows))
    alone = max(len(prompts[i]) + len(completions[i]) for row in rows for i in row)
    # Without a mask half of the pairs, those of the future, are never computed.
    apart = shared and not forked and num_samples * alone**2 <= 2 * len(rows) * longest**2
    placed: list[tuple[int, int, slice]] = []  # of each completion: where its prompt starts, its length, its own tokens
    ids: list[int] = []
    positions: list[Tensor] = []
    tokens: list[Tensor] = []
    chosen: list[int] = []

    def add(new: Sequence[int], line: int, state_column: int, position: int) -> slice:
        """Append a completion or branch after the state that predicts its first token. Returns where it is."""
        token_indices = torch.arange(len(new))
        columns = len(ids) + token_indices
        state_columns = torch.where(token_indices == 0, state_column, columns - 1)
        tokens.append(torch.stack([columns, state_columns, torch.full_like(token_indices, line), token_indices]))
        positions.append(position + token_indices)
        ids.extend(new)
        return slice(len(ids) - len(new), len(ids))

    line = 0
    for number, row in enumerate(rows):
        prompt, row_start, branch = prompts[row[0]], len(ids), 0
        ids += prompt
        positions.append(torch.arange(len(prompt)))
        numbers[number, : len(prompt)] = 0
        prompt_end = len(ids) - 1
        for i in row:
            branch = parent = branch + 1
            added = add(completions[i], line, prompt_end, len(prompt))
            placed.append((row_start, len(prompt), added))
            completion = _shift(added, -row_start)
            numbers[number, completion] = branch
            line += 1
            for k in by_sample[i]:
                branch, start = branch + 1, branches[k].start
                state_column = row_start + completion.start + start - 1 if start else prompt_end
                added = add(branches[k].ids, num_samples + len(chosen), state_column, len(prompt) + start)
                columns = _shift(added, -row_start)
                numbers[number, columns] = branch
                parents[number, columns] = parent
                forks[number, columns] = completion.start + start
                chosen.append(k)
    columns, state_columns, lines, token_indices = torch.cat(tokens, dim=1).to(device)
    return TokenBatch(
        ids=torch.tensor([ids], device=device),
        rows=torch.zeros_like(columns),
        columns=columns,
        state_columns=state_columns,
        samples=lines,
        token_indices=token_indices,
        num_samples=num_samples + len(chosen),
        width=max(part.shape[1] for part in tokens),
        packed=_apart(placed, len(ids), alone, device)
        if apart
        else PackedRows(
            indices=(numbers >= 0).flatten().nonzero().squeeze(1).to(device),
            rows=len(rows),
            width=width,
            branches=numbers.to(device) if shared else None,
            parents=parents.to(device) if forked else None,
            forks=forks.to(device) if forked else None,
        ),
        positions=torch.cat(positions).to(device),
        branches=tuple(chosen),
    )


def _apart(placed: Sequence[tuple[int, int, slice]], num_tokens: int, width: int, device: torch.device) -> PackedRows:
    """Return rows for attention, one per completion, each with a copy of its prompt, in blocks of similar lengths.

    placed: start and length of the prompt, and tokens of the completion, all in the packed tokens.
    """
    lengths = [length + completion.stop - completion.start for _, length, completion in placed]
    blocks = length_blocks(lengths)
    shapes = tuple((len(block), max(lengths[i] for i in block)) for block in blocks)
    indices = torch.empty(num_tokens, dtype=torch.long)
    # Padding takes any token, each another one: on a GPU gradients of the same token wait for each other.
    sources = torch.arange(sum(rows * longest for rows, longest in shapes)) % num_tokens
    place = 0
    for block, (_, longest) in zip(blocks, shapes, strict=True):
        for start, length, completion in (placed[i] for i in block):
            tokens = torch.cat([torch.arange(start, start + length), torch.arange(completion.start, completion.stop)])
            places = place + torch.arange(len(tokens))
            sources[places] = tokens
            indices[tokens] = places
            place += longest
    return PackedRows(indices.to(device), len(placed), width, sources=sources.to(device), blocks=shapes)


def length_blocks(lengths: Sequence[int]) -> list[list[int]]:
    """Divide rows into blocks that are as wide as their longest row: at most MAX_BLOCKS, of MIN_BLOCK rows or more.

    One block, in the given order, where more would spare less than a fifth of the pairs of tokens.
    """
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    size = max(-(-len(order) // MAX_BLOCKS), MIN_BLOCK)
    blocks = [order[start : start + size] for start in range(0, len(order), size)]
    pairs = sum(len(block) * lengths[block[-1]] ** 2 for block in blocks)
    return blocks if pairs <= 0.8 * len(lengths) * max(lengths) ** 2 else [list(range(len(lengths)))]


def branches_by_sample(branches: Sequence[Branch]) -> dict[int, list[int]]:
    """Return the indices of the branches of each completion; of one without branches, none."""
    by_sample: dict[int, list[int]] = defaultdict(list)
    for k, branch in enumerate(branches):
        by_sample[branch.sample].append(k)
    return by_sample


def sample_lengths(completions: TokenIds, branches: Sequence[Branch] = ()) -> list[int]:
    """Return the tokens of each completion and its branches."""
    lengths = [len(completion) for completion in completions]
    for branch in branches:
        lengths[branch.sample] += len(branch.ids)
    return lengths


def row_length(prompts: TokenIds, own_tokens: Sequence[int], row: Row) -> int:
    """Return the tokens of a row: its prompt once, and all of its completions. own_tokens: as `sample_lengths`."""
    return len(prompts[row[0]]) + sum(own_tokens[i] for i in row)


def _shift(part: slice, by: int) -> slice:
    return slice(part.start + by, part.stop + by)
