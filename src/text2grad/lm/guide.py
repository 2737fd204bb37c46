"""Sampling within a form: what may be the next token of each completion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from text2grad.lm.batching import sent


class Guide(Protocol):
    """Keeps completions within a form: what may not come next cannot be drawn."""

    def allowed(self, completions: Sequence[int], width: int, device: torch.device) -> Tensor:
        """(completions, width) booleans: what may be the next token of each. Asked for while the model computes."""
        ...

    def advance(self, completions: Sequence[int], tokens: Sequence[int]) -> None:
        """These completions got these tokens, perhaps none. Told while the model computes."""
        ...


class Guided:
    """A guide and what it has to know of the batch, kept on the host: asking the GPU would be waiting for it."""

    def __init__(self, guide: Guide, rows: int, end_ids: Sequence[int]) -> None:
        self._guide = guide
        self._ends = frozenset(end_ids)
        self._completions = list(range(rows))  # which completion each row of the batch is
        self._going = list(range(rows))  # the rows that have not ended
        self._news: tuple[list[int], list[int]] = ([], [])  # completions and tokens that the guide has not heard of

    @property
    def share_finished(self) -> float:
        """Of the rows."""
        return 1 - len(self._going) / len(self._completions)

    def constrain(self, logits: Tensor) -> Tensor:
        """logits: (rows, vocabulary), perhaps still being computed. Returns them with -inf for what may not come."""
        self._guide.advance(*self._news)
        completions = [self._completions[row] for row in self._going]
        allowed = self._guide.allowed(completions, logits.shape[1], logits.device)
        if len(completions) == len(logits):
            return logits.masked_fill(~allowed, float("-inf"))
        rows = sent(torch.tensor(self._going), logits.device)
        return logits.index_copy(0, rows, logits[rows].masked_fill(~allowed, float("-inf")))

    def note(self, chosen: Tensor) -> None:
        """chosen: (rows,). The guide hears of them when the next step has begun: a GPU need not wait for that."""
        tokens = chosen.tolist()
        self._news = [self._completions[row] for row in self._going], [tokens[row] for row in self._going]
        self._going = [row for row in self._going if tokens[row] not in self._ends]

    def keep(self, rows: Sequence[int]) -> None:
        """Only these rows are left, all of them under way."""
        self._completions = [self._completions[row] for row in rows]
        self._going = list(range(len(rows)))


def unpacked(bits: Tensor, width: int) -> Tensor:
    """(rows, words of 32 bits) -> (rows, width) booleans, the lowest bit first."""
    places = torch.arange(32, device=bits.device, dtype=torch.int32)
    return ((bits.unsqueeze(-1) >> places) & 1).flatten(1)[:, :width].bool()
