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
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

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


class _Piece(NamedTuple):
    """A completion or a branch among packed tokens.

    start, length: its tokens. state: the token whose state predicts its first one. line: of the scores. position: of
    its first token; a completion's is the length of its prompt. row, row_start: its row, and the first token of that.
    number: which piece of its row it is, from 1 on. parent, fork: of a branch, the number of its completion, and the
    column of the row from which on it does not see that; 0 for a completion.
    """

    start: int
    length: int
    state: int
    line: int
    position: int
    row: int
    row_start: int
    number: int
    parent: int = 0
    fork: int = 0

    @property
    def columns(self) -> slice:
        """Its tokens in its row."""
        return slice(self.start - self.row_start, self.start - self.row_start + self.length)

    def places(self) -> Tensor:
        """(4, tokens): column, column of the state that predicts it, line of the scores, and index of each token."""
        indices = torch.arange(self.length)
        columns = self.start + indices
        states = torch.where(indices == 0, self.state, columns - 1)
        return torch.stack([columns, states, torch.full_like(indices, self.line), indices])


def pack_rows(
    prompts: TokenIds, completions: TokenIds, rows: Sequence[Row], device: torch.device, branches: Sequence[Branch] = ()
) -> TokenBatch:
    """Return one packed micro-batch, its samples in the order of the rows, then their branches in that order.

    A row is a prompt and all of its completions, each followed by its branches. Attention sees such rows with a mask,
    or, where that has fewer pairs of tokens and there are no branches, each completion beside a copy of its prompt.
    """
    ids, pieces, chosen = _lay_out(prompts, completions, rows, branches)
    num_samples = len(pieces) - len(chosen)
    longest = max(piece.columns.stop for piece in pieces)
    alone = max(piece.position + piece.length for piece in pieces if not piece.parent)
    shared = bool(chosen) or num_samples > len(rows)
    # Without a mask half of the pairs, those of the future, are never computed.
    if shared and not chosen and num_samples * alone**2 <= 2 * len(rows) * longest**2:
        packed = _apart(pieces, len(ids), alone, device)
    else:
        packed = _together(pieces, len(rows), round_up_to_8(longest) if shared else longest, shared, device)
    columns, state_columns, lines, token_indices = torch.cat([piece.places() for piece in pieces], dim=1).to(device)
    positions = torch.empty(len(ids), dtype=torch.long)
    for piece in pieces:
        if piece.number == 1:
            positions[piece.row_start : piece.start] = torch.arange(piece.position)
        positions[piece.start : piece.start + piece.length] = piece.position + torch.arange(piece.length)
    return TokenBatch(
        ids=torch.tensor([ids], device=device),
        rows=torch.zeros_like(columns),
        columns=columns,
        state_columns=state_columns,
        samples=lines,
        token_indices=token_indices,
        num_samples=len(pieces),
        width=max(piece.length for piece in pieces),
        packed=packed,
        positions=positions.to(device),
        branches=tuple(chosen),
    )


def _lay_out(
    prompts: TokenIds, completions: TokenIds, rows: Sequence[Row], branches: Sequence[Branch]
) -> tuple[list[int], list[_Piece], list[int]]:
    """Return the packed ids, the completions and branches among them, and which branches these are."""
    by_sample, num_samples = branches_by_sample(branches), sum(map(len, rows))
    ids: list[int] = []
    pieces: list[_Piece] = []
    chosen: list[int] = []
    for row_number, row in enumerate(rows):
        prompt, row_start, number = prompts[row[0]], len(ids), 0
        ids += prompt
        prompt_end = len(ids) - 1
        for i in row:
            number = parent = number + 1
            start, line = len(ids), len(pieces) - len(chosen)
            placed = (row_number, row_start, number)
            pieces.append(_Piece(start, len(completions[i]), prompt_end, line, len(prompt), *placed))
            ids += completions[i]
            for k in by_sample[i]:
                number, fork = number + 1, branches[k].start
                state, line = start + fork - 1 if fork else prompt_end, num_samples + len(chosen)
                placed = (row_number, row_start, number)
                branch = _Piece(len(ids), len(branches[k].ids), state, line, len(prompt) + fork, *placed)
                pieces.append(branch._replace(parent=parent, fork=start - row_start + fork))
                ids += branches[k].ids
                chosen.append(k)
    return ids, pieces, chosen


def _together(pieces: Sequence[_Piece], num_rows: int, width: int, shared: bool, device: torch.device) -> PackedRows:
    """Return rows for attention as they are packed, with what the mask is made of where rows are shared."""
    numbers = torch.full((num_rows, width), -1)
    parents, forks = torch.zeros_like(numbers), torch.zeros_like(numbers)
    for piece in pieces:
        if piece.number == 1:
            numbers[piece.row, : piece.position] = 0
        numbers[piece.row, piece.columns] = piece.number
        parents[piece.row, piece.columns] = piece.parent
        forks[piece.row, piece.columns] = piece.fork
    forked = any(piece.parent for piece in pieces)
    return PackedRows(
        indices=(numbers >= 0).flatten().nonzero().squeeze(1).to(device),
        rows=num_rows,
        width=width,
        branches=numbers.to(device) if shared else None,
        parents=parents.to(device) if forked else None,
        forks=forks.to(device) if forked else None,
    )


def _apart(pieces: Sequence[_Piece], num_tokens: int, width: int, device: torch.device) -> PackedRows:
    """Return rows for attention, one per completion, each with a copy of its prompt, in blocks of similar lengths."""
    lengths = [piece.position + piece.length for piece in pieces]
    blocks = length_blocks(lengths)
    shapes = tuple((len(block), max(lengths[i] for i in block)) for block in blocks)
    indices = torch.empty(num_tokens, dtype=torch.long)
    # Padding takes any token, each another one: on a GPU gradients of the same token wait for each other.
    sources = torch.arange(sum(rows * longest for rows, longest in shapes)) % num_tokens
    starts: dict[int, list[int]] = defaultdict(list)  # of each prompt, by its first token: the places where it begins
    place = 0
    for block, (_, longest) in zip(blocks, shapes, strict=True):
        for piece in (pieces[i] for i in block):
            prompt = torch.arange(piece.row_start, piece.row_start + piece.position)
            tokens = torch.cat([prompt, torch.arange(piece.start, piece.start + piece.length)])
            places = place + torch.arange(len(tokens))
            sources[places] = tokens
            indices[tokens] = places
            starts[piece.row_start].append(place)
            place += longest
    copies = _copies({piece.row_start: piece.position for piece in pieces}, starts, device)
    return PackedRows(
        indices.to(device), len(pieces), width, sources=sources.to(device), blocks=shapes, copies=tuple(copies)
    )


def _copies(
    lengths: Mapping[int, int], starts: Mapping[int, Sequence[int]], device: torch.device
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the tokens of prompts with equally many copies, and the places of each; see `PackedRows.copies`.

    lengths: of prompts, by their first token. starts: of their copies.
    """
    for number in sorted({len(places) for places in starts.values()} - {1}):
        chosen = [first for first, places in starts.items() if len(places) == number]
        tokens = torch.cat([first + torch.arange(lengths[first]) for first in chosen])
        places = [torch.tensor(starts[first]) + torch.arange(lengths[first])[:, None] for first in chosen]
        yield tokens.to(device), torch.cat(places).to(device)


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
