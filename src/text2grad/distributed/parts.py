"""Tensors as DeepSpeed's stage 3 divides them: cut flat into equal pieces, one for each process."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Part:
    """What one process holds of a tensor of this shape.

    held: (pieces,), with pieces = elements / processes, rounded up; what goes beyond the last element means nothing.
    """

    held: Tensor
    shape: torch.Size

    def whole(self) -> Tensor:
        """The tensor, put together from the parts of all processes; every process must ask for it."""
        pieces = [torch.empty_like(self.held) for _ in range(torch.distributed.get_world_size())]
        torch.distributed.all_gather(pieces, self.held)
        return torch.cat(pieces)[: self.shape.numel()].view(self.shape)

    def cut(self, tensor: Tensor) -> Part:
        """This process's part of a whole tensor of the same shape, which every process has."""
        size = self.held.numel()
        piece = tensor.flatten()[size * torch.distributed.get_rank() :][:size]
        held = torch.zeros_like(self.held)
        held[: len(piece)] = piece
        return Part(held, self.shape)


def part_of(tensor: Tensor) -> Part | None:
    """This process's part of a parameter that DeepSpeed has divided, in the parameter's own memory; None of others."""
    held = getattr(tensor, "ds_tensor", None)
    return None if held is None else Part(held.detach(), tensor.ds_shape)  # type: ignore[attr-defined]
