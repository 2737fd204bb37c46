"""Constrained decoding of judgements: what may come next, as the sampler wants it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from text2grad.lm.batching import sent
from text2grad.lm.guide import unpacked
from text2grad.reward.matchers import Matchers


class GrammarGuide:
    """Keeps each judgement of a batch within the grammar of its answer (see lm.guide.Guide)."""

    def __init__(self, matchers: Matchers) -> None:
        self._matchers = matchers

    def allowed(self, completions: Sequence[int], width: int, device: torch.device) -> Tensor:
        """(completions, width) booleans."""
        return unpacked(sent(torch.from_numpy(self._matchers.masks(completions)), device), width)

    def advance(self, completions: Sequence[int], tokens: Sequence[int]) -> None:
        self._matchers.advance(completions, tokens)
