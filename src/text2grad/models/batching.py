"""Ragged rows of token ids to tensors. Masks come from lengths, never from `ids != pad`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from text2grad.models.flat_attention import Spread


class Flat(NamedTuple):
    """How rows lie one after the other without padding, several completions of one prompt to a row.

    positions, places: (tokens,), positions restart after the prompt for each completion; for places see flat.Spread.
    branches: (rows, longest row), 0 on the prompt, k on its k-th completion, -1 on padding; None where every row is one
        prompt and one completion.
    rows, width: what the shape of branches is or would be.
    """

    positions: Tensor
    places: Tensor
    branches: Tensor | None
    rows: int
    width: int


@dataclass(frozen=True)
class TokenRows:
    """Prompts and completions as the rows of one forward pass, and where their completion tokens are.

    ids: (rows, longest row), padded on the right; with `flat`, (1, tokens).
    rows, columns: (valid tokens,), the place of each completion token in ids, completion by completion.
    before: (valid tokens,), the column of the state that predicts it; for a first token the prompt's last one.
    samples, slots: (valid tokens,), which completion it belongs to, and its index within that.
    count, width: how many completions, and the longest of them.
    """

    ids: Tensor
    rows: Tensor
    columns: Tensor
    before: Tensor
    samples: Tensor
    slots: Tensor
    count: int
    width: int
    flat: Flat | None = None

    def scatter(self, flat: Tensor) -> Tensor:
        """(valid tokens,) -> (completions, width), 0 after a completion's end."""
        return flat.new_zeros(self.count, self.width).index_put((self.samples, self.slots), flat)

    def inputs(self, dtype: torch.dtype) -> dict[str, Any]:
        """What a model's trunk is called with. dtype: that of its attention, for the mask of shared rows.

        Padded rows need no mask: a causal model never looks at padding on the right, and without a mask the fastest
        attention kernels can be taken.
        """
        if self.flat is None:
            return {"input_ids": self.ids}
        positions, places, branches, rows, width = self.flat
        mask = None if branches is None else branch_mask(branches, dtype)
        return {
            "input_ids": self.ids,
            "position_ids": positions.unsqueeze(0),
            # Of four dimensions it is handed on as it is, where none at all would make the model think of one.
            "attention_mask": self.ids.new_empty(1, 1, 0, 0),
            "spread": Spread(places, rows, width, mask),
        }


def branch_mask(branches: Tensor, dtype: torch.dtype) -> Tensor:
    """Who may look at whom: each token at the prompt and at its own completion, never ahead.

    branches: (rows, tokens). Returns (rows, 1, tokens, tokens), to be added to attention scores: 0 or -infinity.
    Added rather than boolean, since attention turns a boolean mask into this one anew, and keeps it, in every layer.
    """
    looking, seen = branches.unsqueeze(2), branches.unsqueeze(1)
    ahead = torch.ones(branches.shape[1], branches.shape[1], dtype=torch.bool, device=branches.device).triu(1)
    hidden = ahead | ((seen != 0) & (seen != looking))
    mask = torch.zeros(hidden.shape, dtype=dtype, device=branches.device)
    return mask.masked_fill_(hidden, float("-inf")).unsqueeze(1)


def pad_right(
    prompts: Sequence[Sequence[int]], completions: Sequence[Sequence[int]], device: torch.device
) -> TokenRows:
    """Lay prompt + completion rows out for a scoring pass, each row at the left.

    Every prompt and every completion must hold at least one token.
    """
    lengths = [len(p) + len(c) for p, c in zip(prompts, completions, strict=True)]
    ids = torch.zeros(len(prompts), max(lengths), dtype=torch.long)
    places = []
    for row, (prompt, completion) in enumerate(zip(prompts, completions, strict=True)):
        ids[row, : lengths[row]] = torch.tensor([*prompt, *completion])
        slots = torch.arange(len(completion))
        places.append(torch.stack([torch.full_like(slots, row), slots + len(prompt), slots]))
    rows, columns, slots = torch.cat(places, dim=1).to(device)
    return TokenRows(
        ids=ids.to(device),
        rows=rows,
        columns=columns,
        before=columns - 1,
        samples=rows,
        slots=slots,
        count=len(completions),
        width=max(map(len, completions)),
    )


def pad_right_rows(rows: Sequence[Sequence[int]], device: torch.device) -> Tensor:
    """Rows for a scoring pass, (rows, longest row), each row at the left."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *[0] * (width - len(row))] for row in rows]).to(device)


def pad_left(prompts: Sequence[Sequence[int]], pad_id: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Prompts for generation: (ids, attention_mask), both (batch, longest prompt), each prompt at the right."""
    width = max(map(len, prompts))
    ids = torch.tensor([[pad_id] * (width - len(p)) + list(p) for p in prompts])
    attention_mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts])
    return ids.to(device), attention_mask.to(device)


def by_token_budget(lengths: Sequence[int], max_tokens: int, stretch: float = 1.0) -> list[list[int]]:
    """Rows in micro-batches: sorted by length, each with at least one row and else at most `max_tokens`.

    stretch: tokens count without padding, but with it a micro-batch may have at most this many times the budget.
    """
    batches: list[list[int]] = []
    tokens = 0
    for index in sorted(range(len(lengths)), key=lambda i: (lengths[i], i)):
        length = lengths[index]
        # Sorted upwards, so this row is the longest of the batch that it joins.
        padded = (len(batches[-1]) + 1) * length if batches else 0
        if batches and tokens + length <= max_tokens and padded <= stretch * max_tokens:
            batches[-1].append(index)
            tokens += length
        else:
            batches.append([index])
            tokens = length
    return batches


def aligned(length: int) -> int:
    """The next multiple of 8: fast kernels on a GPU want rows that begin at whole blocks of memory."""
    return -(-length // 8) * 8


def pinned(tensor: Tensor, device: torch.device) -> Tensor:
    """A tensor of the CPU's where a GPU can fetch it by itself when its turn comes."""
    return tensor.pin_memory() if device.type == "cuda" else tensor


def sent(tensor: Tensor, device: torch.device) -> Tensor:
    """A tensor of the CPU's on the device, without waiting for what a GPU was asked before."""
    return pinned(tensor, device).to(device, non_blocking=True)


def fetched(tensor: Tensor) -> Callable[[], list[int]]:
    """Begin to fetch whole numbers to the CPU; the function waits for them, but not for what a GPU is asked later."""
    here = tensor.to("cpu", non_blocking=True)
    if not tensor.is_cuda:
        return here.tolist
    arrived: Any = torch.cuda.Event()  # type: ignore[no-untyped-call]
    arrived.record(torch.cuda.current_stream(tensor.device))  # of that GPU, which need not be the current one

    def wait() -> list[int]:
        arrived.synchronize()
        numbers: list[int] = here.tolist()
        return numbers

    return wait


def stack_rows(rows: Sequence[Tensor], width: int) -> Tensor:
    """1-D tensors of different lengths -> (rows, width), padded with 0 on the right."""
    stacked = torch.zeros(len(rows), width)
    for i, row in enumerate(rows):
        stacked[i, : len(row)] = row
    return stacked
