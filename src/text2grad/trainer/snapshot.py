"""A copy of what an update changes, to undo one that went wrong."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from text2grad.distributed.learner import optimizer_parameters


@dataclass(frozen=True)
class Snapshot:
    """Trained weights and optimiser state as they were; three times the memory of what is trained, with Adam."""

    weights: list[Tensor]
    optimizer_state: dict[str, Any]

    @classmethod
    def take(cls, optimizer: torch.optim.Optimizer) -> Snapshot:
        """Copy the optimiser's parameters and its state."""
        weights = [p.detach().clone() for p in optimizer_parameters(optimizer)]
        return cls(weights, copy.deepcopy(optimizer.state_dict()))

    @torch.no_grad()
    def restore(self, optimizer: torch.optim.Optimizer) -> None:
        """Put both back."""
        for parameter, saved in zip(optimizer_parameters(optimizer), self.weights, strict=True):
            parameter.copy_(saved)
        optimizer.load_state_dict(copy.deepcopy(self.optimizer_state))
