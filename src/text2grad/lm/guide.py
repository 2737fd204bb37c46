"""Sampling within a form: what may be the next token of each completion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import cache
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from text2grad.lm.batching import fetched, pinned, sent
from text2grad.lm.matching import Masks


class Guide(Protocol):
    """Keeps completions within a form: what may not come next cannot be drawn.

    Heard in a thread of its own, on a GPU while the model computes.
    """

    def advance(self, completions: Sequence[int], tokens: Sequence[int]) -> None:
        """These completions got these tokens."""
        ...

    def masks(self, completions: Sequence[int]) -> Masks:
        """What may be the next token of each of these, a line each."""
        ...


class _Word(NamedTuple):
    """What the guide said last: which rows of the batch are under way, and what may be the next token of each row.

    masks: (rows, words of 32 bits), see matching.Masks, on the CPU; none where all rows have ended.
    """

    going: list[int]
    masks: Tensor | None


class Guided:
    """A guide and what it has to know of the batch, kept on the host: asking the GPU would be waiting for it.

    On a GPU the next step begins before the tokens of this one are known here, so that it never idles; that a
    completion has ended is then known one step later.
    """

    def __init__(self, guide: Guide, rows: int, end_ids: Sequence[int], device: torch.device, thread: Executor) -> None:
        """thread: where the guide is heard, one thing at a time."""
        self._guide = guide
        self._ends = frozenset(end_ids)
        self._device = device
        self._thread = thread
        self._completions = list(range(rows))  # which completion each row of the batch is
        self._said = _Word(self._completions, None)
        self._asked = thread.submit(self._word, self._completions, self._completions)

    def rows_going(self) -> list[int]:
        """Rows that have not ended, as far as is known."""
        return self._said.going

    def constrain(self, logits: Tensor) -> Tensor:
        """logits: (rows, vocabulary), perhaps still being computed. Returns them with -inf for what may not come."""
        self._said = self._asked.result()
        if self._said.masks is None:
            return logits
        return logits.masked_fill(missing(sent(self._said.masks, self._device), logits.shape[1]), float("-inf"))

    def note(self, chosen: Tensor) -> None:
        """chosen: (rows,). Ask the guide what may follow them."""
        self._asked = self._thread.submit(self._hear, self._said.going, self._completions, fetched(chosen))
        if not runs_ahead(self._device):
            self._said = self._asked.result()

    def keep(self, rows: Sequence[int]) -> None:
        """Only these rows are left."""
        going, masks = self._asked.result()
        still = set(going)
        left = [place for place, row in enumerate(rows) if row in still]
        word = self._said = _Word(left, None if masks is None else masks[list(rows)])
        self._completions = [self._completions[row] for row in rows]
        self._asked = self._thread.submit(lambda: word)

    def _hear(self, going: list[int], completions: list[int], chosen: Callable[[], list[int]]) -> _Word:
        tokens = chosen()
        self._guide.advance([completions[row] for row in going], [tokens[row] for row in going])
        return self._word([row for row in going if tokens[row] not in self._ends], completions)

    def _word(self, going: list[int], completions: list[int]) -> _Word:
        if not going:
            return _Word([], None)
        masks = torch.from_numpy(self._guide.masks([completions[row] for row in going]))
        if len(going) < len(completions):  # what ended rows draw is nobody's concern
            masks = masks.new_full((len(completions), masks.shape[1]), -1).index_copy_(0, torch.tensor(going), masks)
        return _Word(going, pinned(masks, self._device))


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
