"""Several LoRA adapters of one frozen model, each for its own part of a batch: as many training runs for one launch.

A step of a small model is mostly kernel launches. Runs that start from the same model differ only in their adapters,
which are a small share of the arithmetic: a pass over the rows of all runs takes hardly longer than over those of one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from peft.tuners import lora
from torch import Tensor, nn


class LoraStack:
    """The adapters and value heads of several runs ("members"), in place of the one adapter of a PEFT model.

    weights, gradients: (members, numbers of an adapter). value_weights, value_gradients: (members, width + 1), the
    value head and its bias. Layers read views of them, so that the norm of a member's gradient, and its optimiser step,
    are those of one row.
    """

    def __init__(self, model: Any, width: int, seeds: Sequence[int]) -> None:
        """model: a PEFT model with plain LoRA; its layers are replaced. width: of hidden states. seeds: of members."""
        found = [(name, layer) for name, layer in model.named_modules() if isinstance(layer, lora.Linear)]
        device, size, shapes = found[0][1].base_layer.weight.device, 0, []
        for _, layer in found:
            down, up = layer.lora_A["default"].weight.shape, layer.lora_B["default"].weight.shape
            shapes.append((down, up, size))
            size += math.prod(down) + math.prod(up)
        self.weights, self.gradients = (torch.zeros(len(seeds), size, device=device) for _ in range(2))
        self.value_weights, self.value_gradients = (torch.zeros(len(seeds), width + 1, device=device) for _ in range(2))
        self.value_heads = _leaf(self.value_weights, self.value_gradients)
        self.members: list[int] | None = list(range(len(seeds)))  # whose rows a batch holds; None: the bare model
        self._layers = []
        for (name, layer), (down, up, start) in zip(found, shapes, strict=True):
            middle, end = start + math.prod(down), start + math.prod(down) + math.prod(up)
            pairs = [
                _leaf(self.weights[:, a:b].view(-1, *shape), self.gradients[:, a:b].view(-1, *shape))
                for a, b, shape in ((start, middle, down), (middle, end, up))
            ]
            stacked = StackedLinear(layer.base_layer, *pairs, layer.scaling["default"], self)
            parent, _, own = name.rpartition(".")
            setattr(model.get_submodule(parent), own, stacked)
            self._layers.append(stacked)
        for member, seed in enumerate(seeds):
            generator = torch.Generator().manual_seed(seed)  # the same adapter on every device
            for layer in self._layers:
                first = torch.empty(layer.down.shape[1:])
                nn.init.kaiming_uniform_(first, a=math.sqrt(5), generator=generator)
                layer.down.data[member] = first.to(device)

    @contextmanager
    def rows_of(self, members: Sequence[int] | None, frozen: bool = False) -> Iterator[None]:
        """Let a batch hold equally many rows, or tokens, of each of these members, one member after the other.

        frozen: the adapters do not change within the context, so they are cast and scaled once.
        """
        before, self.members = self.members, None if members is None else list(members)
        for layer in self._layers if frozen and members is not None else ():
            layer.freeze(self.members)
        try:
            yield
        finally:
            self.members = before
            for layer in self._layers:
                layer.frozen = None

    def values(self, states: Tensor, members: Tensor) -> Tensor:
        """states: (tokens, width); members: (tokens,). Returns (tokens,), float32."""
        heads = self.value_heads[members]
        return (states.float() * heads[:, :-1]).sum(-1) + heads[:, -1]


class StackedLinear(nn.Module):
    """A frozen linear layer and one low-rank addition per member."""

    def __init__(self, base: nn.Module, down: nn.Parameter, up: nn.Parameter, scaling: float, stack: LoraStack) -> None:
        """down: (members, rank, inputs); up: (members, outputs, rank)."""
        super().__init__()
        self.base, self.down, self.up, self.scaling = base, down, up, scaling
        self.frozen: tuple[Tensor, Tensor] | None = None
        self._stack = [stack]  # in a list: not a submodule

    def freeze(self, members: Sequence[int] | None) -> None:
        down, up = self._chosen(members)
        dtype = torch.get_autocast_dtype(down.device.type) if torch.is_autocast_enabled(down.device.type) else None
        self.frozen = down.detach().to(dtype or down.dtype), (up.detach() * self.scaling).to(dtype or up.dtype)

    def forward(self, x: Tensor) -> Tensor:
        """x: (..., inputs), equally many rows of each member."""
        base: Tensor = self.base(x)
        members = self._stack[0].members
        if members is None:
            return base
        down, up = self.frozen or self._chosen(members)
        scale = 1.0 if self.frozen else self.scaling
        inputs = x.reshape(len(members), -1, x.shape[-1])
        added = torch.bmm(torch.bmm(inputs, down.transpose(1, 2)), up.transpose(1, 2))
        return torch.add(base, added.view(base.shape), alpha=scale)

    def _chosen(self, members: Sequence[int] | None) -> tuple[Tensor, Tensor]:
        if members is None or list(members) == list(range(len(self.down))):
            return self.down, self.up
        index = torch.tensor(members, device=self.down.device)
        return self.down[index], self.up[index]


class InPlaceAdamW(torch.optim.AdamW):
    """AdamW whose gradients stay where they are, as views of the stack's."""

    def zero_grad(self, set_to_none: bool = False) -> None:
        super().zero_grad(set_to_none=False)


def member_optimizer(stack: LoraStack, member: int, rate: float, value_rate: float, decay: float) -> InPlaceAdamW:
    """Return the optimiser of one member's adapter and value head."""
    adapter, head = (
        _leaf(weights[member], gradients[member])
        for weights, gradients in (
            (stack.weights, stack.gradients),
            (stack.value_weights, stack.value_gradients),
        )
    )
    groups: list[dict[str, Any]] = [{"params": [adapter]}, {"params": [head], "lr": value_rate}]
    return InPlaceAdamW(groups, lr=rate, weight_decay=decay, fused=adapter.is_cuda)


def _leaf(weights: Tensor, gradients: Tensor) -> nn.Parameter:
    """Return a parameter that reads these weights and accumulates its gradient into `gradients`."""
    parameter = nn.Parameter(weights)
    parameter.grad = gradients
    return parameter


def pad_lengths(missing: int, longest: int) -> list[int]:
    """Return lengths of at least 2 and about `longest` that add up to `missing`, which is 0 or at least 2."""
    if not missing:
        return []
    pieces = max(1, missing // max(longest, 2))
    size, rest = divmod(missing, pieces)
    return [size + (piece < rest) for piece in range(pieces)]
