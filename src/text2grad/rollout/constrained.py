"""Sampling within a form: what may be the next token of each completion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Protocol

import torch
from torch import Tensor

from text2grad.models.batching import copy_to_device, copy_to_host, pin_memory
from text2grad.rollout.grammar import Masks


class Guide(Protocol):
    """Keeps completions within a form: what may not come next cannot be drawn."""

    def advance(self, completions: Sequence[int], tokens: Sequence[int]) -> None:
        """These completions got these tokens."""
        ...

    def fill(self, masks: Masks, lines: Sequence[int], completions: Sequence[int]) -> None:
        """Write what may be the next token of each of these completions into its line."""
        ...


class Guided:
    """A guide and what it has to know of the batch, kept on the host: asking the GPU would be waiting for it.

    On a GPU the tokens of a step are heard while the next step is computed, so that it never idles; that a completion
    has ended is then known one step later.
    """

    def __init__(self, guide: Guide, rows: int, end_ids: Sequence[int], device: torch.device) -> None:
        self._guide = guide
        self._ends = frozenset(end_ids)
        self._device = device
        self._completions = list(range(rows))  # which completion each row of the batch is
        self._going = list(range(rows))
        self._arriving: Callable[[], list[int]] | None = None
        self._masks = torch.empty(0, dtype=torch.int32)

    def rows_going(self) -> list[int]:
        """Rows that have not ended, as far as is known."""
        return self._going

    def constrain(self, logits: Tensor) -> Tensor:
        """logits: (rows, vocabulary), perhaps still being computed. Returns them with -inf for what may not come."""
        self._hear()
        width = logits.shape[1]
        if not self._masks.numel():
            # Each step writes over the masks of the last, which the GPU has fetched by then: it drew by them. What
            # rows draw that have ended is nobody's concern.
            everything = torch.full((len(logits), -(-width // 32)), -1, dtype=torch.int32)
            self._masks = pin_memory(everything, self._device)
        self._guide.fill(self._masks.numpy(), self._going, [self._completions[row] for row in self._going])
        return logits.masked_fill(missing(copy_to_device(self._masks, self._device), width), float("-inf"))

    def note(self, chosen: Tensor) -> None:
        """chosen: (rows,), the tokens that were drawn."""
        self._arriving = copy_to_host(chosen)
        if not runs_ahead(self._device):
            self._hear()

    def keep(self, rows: Sequence[int]) -> None:
        """Only these rows are left."""
        self._hear()
        still = set(self._going)
        self._going = [place for place, row in enumerate(rows) if row in still]
        self._completions = [self._completions[row] for row in rows]
        self._masks = self._masks[:0]

    def _hear(self) -> None:
        """Tell the guide of the tokens that were noted last."""
        if self._arriving is None:
            return
        tokens = self._arriving()
        self._arriving = None
        self._guide.advance([self._completions[row] for row in self._going], [tokens[row] for row in self._going])
        self._going = [row for row in self._going if tokens[row] not in self._ends]


def runs_ahead(device: torch.device) -> bool:
    """Whether a step of the model returns before it is computed."""
    return device.type == "cuda"


def missing(bits: Tensor, width: int) -> Tensor:
    """(rows, words of 32 bits) -> (rows, width) booleans: which bits are not set, the lowest first."""
    return ((bits.unsqueeze(-1) & _powers(bits.device)) == 0).flatten(1)[:, :width]


@cache
def _powers(device: torch.device) -> Tensor:
    """(32,), one bit of a word each, the lowest first; the last is the sign."""
    return (1 << torch.arange(32)).to(torch.int32).to(device)
