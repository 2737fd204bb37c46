"""A copy of what an update changes, to undo one that went wrong."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from text2grad.distributed.sharding import own_share


@dataclass(frozen=True)
class Snapshot:
    """Trained weights and optimiser state as they were; three times the memory of what is trained, with Adam."""

    weights: list[Tensor]
    optimizer_state: dict[str, Any]

    @classmethod
    def take(cls, optimizer: torch.optim.Optimizer) -> Snapshot:
        """Copy the optimiser's parameters and its state."""
        weights = [own_share(p).detach().clone() for p in parameters(optimizer)]
        return cls(weights, copy.deepcopy(optimizer.state_dict()))

    @torch.no_grad()
    def restore(self, optimizer: torch.optim.Optimizer) -> None:
        """Put both back."""
        for parameter, saved in zip(parameters(optimizer), self.weights, strict=True):
            own_share(parameter).copy_(saved)
        optimizer.load_state_dict(copy.deepcopy(self.optimizer_state))


def parameters(optimizer: torch.optim.Optimizer) -> list[torch.nn.Parameter]:
    """Everything that the optimiser changes, in the order of its groups."""
    return [p for group in optimizer.param_groups for p in group["params"]]
