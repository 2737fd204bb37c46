"""Ragged token ids to tensors. Masks come from lengths, never from `ids != pad`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from text2grad.models.packed_attention import PackedRows

TokenIds = Sequence[Sequence[int]]  # of several texts


class Branch(NamedTuple):
    """Tokens that take the place of a completion's tokens from `start` on: what a correction asks for.

    sample: index of the completion. start: at most its length. ids: at least one.
    """

    sample: int
    start: int
    ids: Sequence[int]


@dataclass(frozen=True)
class TokenBatch:
    """Prompts, completions and branches of completions of one forward pass, and where the tokens to score are.

    Scores have one line per completion, then one per branch; "completion" below means either.

    ids: (rows, longest row), padded on the right; with `packed`, (1, tokens).
    rows, columns: (valid tokens,), the place of each completion token in ids, completion by completion.
    state_columns: (valid tokens,), the column of the hidden state that predicts it; for a first token the prompt's end.
    samples, token_indices: (valid tokens,), which completion it belongs to, and its index within that.
    num_samples, width: number of completions, and the length of the longest.
    packed, positions: of packed rows; positions, (tokens,), restart after the prompt for each completion, and after the
        tokens that it continues for each branch.
    branches: which branches these are: indices into the list that the rows were made from.
    """

    ids: Tensor
    rows: Tensor
    columns: Tensor
    state_columns: Tensor
    samples: Tensor
    token_indices: Tensor
    num_samples: int
    width: int
    packed: PackedRows | None = None
    positions: Tensor | None = None
    branches: tuple[int, ...] = ()

    def scatter(self, values: Tensor) -> Tensor:
        """(valid tokens,) -> (completions and branches, width), 0 after the end of each."""
        return values.new_zeros(self.num_samples, self.width).index_put((self.samples, self.token_indices), values)

    def model_inputs(self, dtype: torch.dtype) -> dict[str, Any]:
        """Return the keyword arguments of the backbone. dtype: of attention, for the mask of shared rows.

        Padded rows need no mask: a causal model never attends to padding on the right, and without a mask the fastest
        attention kernels can be used.
        """
        if self.packed is None or self.positions is None:
            return {"input_ids": self.ids}
        packed = self.packed
        mask = None if packed.branches is None else branch_mask(packed.branches, dtype, packed.parents, packed.forks)
        return {
            "input_ids": self.ids,
            "position_ids": self.positions.unsqueeze(0),
            # A 4-D mask is passed through as it is; without one the model would build its own.
            "attention_mask": self.ids.new_empty(1, 1, 0, 0),
            "packed_rows": packed._replace(branches=None, parents=None, forks=None, mask=mask),
        }


def branch_mask(
    branches: Tensor, dtype: torch.dtype, parents: Tensor | None = None, forks: Tensor | None = None
) -> Tensor:
    """Causal mask in which each token attends to the prompt and to its own completion only.

    A token of a correction attends to the prompt, to the tokens of its completion before the fork, and to its own.

    branches, parents, forks: (rows, tokens), as in `PackedRows`. Returns (rows, 1, tokens, tokens), additive: 0 or
    -infinity. Attention would convert a boolean mask to this one again, and keep it, in every layer.
    """
    query, key = branches.unsqueeze(2), branches.unsqueeze(1)
    future = torch.ones(branches.shape[1], branches.shape[1], dtype=torch.bool, device=branches.device).triu(1)
    elsewhere = (key != 0) & (key != query)
    if parents is not None and forks is not None:
        columns = torch.arange(branches.shape[1], device=branches.device)
        elsewhere &= (key != parents.unsqueeze(2)) | (columns >= forks.unsqueeze(2))
    hidden = future | elsewhere
    mask = torch.zeros(hidden.shape, dtype=dtype, device=branches.device)
    return mask.masked_fill_(hidden, float("-inf")).unsqueeze(1)


def pad_right(
    prompts: TokenIds, completions: TokenIds, device: torch.device, branches: tuple[int, ...] = ()
) -> TokenBatch:
    """Return prompt + completion rows for a scoring pass, padded on the right.

    Every prompt must hold at least one token. branches: of the last completions, where they are branches.
    """
    ids = pad_right_rows([[*p, *c] for p, c in zip(prompts, completions, strict=True)], device)
    places = []
    for row, (prompt, completion) in enumerate(zip(prompts, completions, strict=True)):
        token_indices = torch.arange(len(completion))
        places.append(torch.stack([torch.full_like(token_indices, row), token_indices + len(prompt), token_indices]))
    rows, columns, token_indices = torch.cat(places, dim=1).to(device)
    return TokenBatch(
        ids=ids,
        rows=rows,
        columns=columns,
        state_columns=columns - 1,
        samples=rows,
        token_indices=token_indices,
        num_samples=len(completions),
        width=max(map(len, completions)),
        branches=branches,
    )


def pad_right_rows(rows: TokenIds, device: torch.device) -> Tensor:
    """Return rows for a scoring pass, (rows, longest row), padded with 0 on the right."""
    return pad_sequence([torch.tensor(row) for row in rows], batch_first=True).to(device)


def pad_left(prompts: TokenIds, pad_id: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return prompts for generation: (ids, attention_mask), both (batch, longest prompt), padded on the left."""
    rows = [torch.tensor(prompt) for prompt in prompts]
    ids = pad_sequence(rows, batch_first=True, padding_value=pad_id, padding_side="left")
    mask = pad_sequence([torch.ones_like(row) for row in rows], batch_first=True, padding_side="left")
    return ids.to(device), mask.to(device)


def split_by_token_budget(lengths: Sequence[int], max_tokens: int, max_padding_ratio: float = 1.0) -> list[list[int]]:
    """Split rows into micro-batches, sorted by length, each of one row or of at most `max_tokens` tokens.

    max_padding_ratio: tokens count without padding, but padded a micro-batch may have at most this many times the
    budget.
    """
    batches: list[list[int]] = []
    tokens = 0
    for index in sorted(range(len(lengths)), key=lambda i: (lengths[i], i)):
        length = lengths[index]
        # Sorted upwards, so this row is the longest of the batch that it joins.
        padded = (len(batches[-1]) + 1) * length if batches else 0
        if batches and tokens + length <= max_tokens and padded <= max_padding_ratio * max_tokens:
            batches[-1].append(index)
            tokens += length
        else:
            batches.append([index])
            tokens = length
    return batches


def round_up_to_8(length: int) -> int:
    """Return the next multiple of 8, at which fast GPU kernels need rows to be aligned."""
    return -(-length // 8) * 8


def pin_memory(tensor: Tensor, device: torch.device) -> Tensor:
    """Return a CPU tensor in pinned memory where the device is a GPU, which can then copy it asynchronously."""
    return tensor.pin_memory() if device.type == "cuda" else tensor


def copy_to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """Copy a CPU tensor to the device asynchronously."""
    return pin_memory(tensor, device).to(device, non_blocking=True)


def copy_to_host(tensor: Tensor) -> Callable[[], list[int]]:
    """Start copying integers to the CPU; the returned function waits for this copy only, not for later kernels."""
    host = tensor.to("cpu", non_blocking=True)
    if not tensor.is_cuda:
        return host.tolist
    copied: Any = torch.cuda.Event()  # type: ignore[no-untyped-call]
    copied.record(torch.cuda.current_stream(tensor.device))  # that GPU need not be the current one

    def wait() -> list[int]:
        copied.synchronize()
        numbers: list[int] = host.tolist()
        return numbers

    return wait


def stack_rows(rows: Sequence[Tensor], width: int) -> Tensor:
    """1-D tensors of different lengths -> (rows, width), padded with 0 on the right."""
    stacked = torch.zeros(len(rows), width)
    for i, row in enumerate(rows):
        stacked[i, : len(row)] = row
    return stacked
