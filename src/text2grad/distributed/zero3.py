"""ZeRO's stage 3 by DeepSpeed: every process holds its share of weights, gradients and moments.

Layers gather their weights as a pass comes to them, the frozen reference's too, so all processes must take equally many
passes through equally many layers.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, ClassVar

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from text2grad.distributed.parts import Part, part_of
from text2grad.distributed.processes import BUCKET, Processes
from text2grad.distributed.zero import ZeroLearner, ZeroOptimizer, make_zero_learner, zero_moments
from text2grad.errors import UserError
from text2grad.models.policy import Policy
from text2grad.trainer.config import PolicySettings


def make_zero3_learner(
    policy: Policy,
    optimizer: torch.optim.AdamW,
    accelerator: Accelerator,
    processes: Processes,
    args: PolicySettings,
) -> ZeroLearner:
    """Hand the policy and a new optimiser over to DeepSpeed, which divides all of it in place."""
    if args.torch_compile:
        raise UserError(
            "torch_compile does not go with DeepSpeed's zero_stage 3, whose hooks are compiled again and again; "
            "leave it out, or launch with configs/accelerate/fsdp2.yaml"
        )
    return make_zero_learner(policy, optimizer, accelerator, processes, args, Zero3Optimizer)


class Zero3Optimizer(ZeroOptimizer):
    """A DeepSpeed engine of stage 3 as a torch optimiser; moments are given and taken in parts."""

    last_stage: ClassVar[int] = 3
    defaults: ClassVar[dict[str, Any]] = {"reduce_bucket_size": BUCKET}  # DeepSpeed's own would take 2 GB

    def __init__(self, policy: Policy, optimizer: torch.optim.AdamW, max_grad_norm: float) -> None:
        # DeepSpeed calls torch's collectives by their old names, in every pass: nothing that a reader could mend.
        warnings.filterwarnings("ignore", r"`torch\.distributed\.\w+_tensor` is deprecated", FutureWarning)
        super().__init__(policy, optimizer, max_grad_norm)
        for layer in _output_layers(policy):
            self._gather_with_the_policy(layer, policy)

    def _gather_with_the_policy(self, layer: nn.Module, policy: Policy) -> None:
        """Have a layer's weights together for the whole of a pass.

        Logits are computed in chunks, as many as a process's tokens need: at each of them the output layer would wait
        for processes that have fewer.
        """
        from deepspeed import zero

        for parameter in layer.parameters():
            zero.register_external_parameter(policy, parameter)
        hooks = [found for module in layer.modules() for found in (module._forward_hooks, module._forward_pre_hooks)]
        gathering = self._zero.parameter_offload
        for handle in (*gathering.forward_hooks, *gathering.backward_hooks):
            if any(handle.hooks_dict_ref() is found for found in hooks):
                handle.remove()

    def gradient_norm(self) -> float:
        from deepspeed.utils import safe_get_local_grad

        squares = torch.stack([safe_get_local_grad(p).double().square().sum() for p in self._parameters]).sum()
        torch.distributed.all_reduce(squares)
        return float(squares**0.5)

    def zero_grad(self) -> None:
        if self._pending:
            self._zero.zero_grad()  # the next backward starts anew
        self._pending = False

    def reshard(self) -> None:
        """Drop the weights that are gathered, which no longer are what was written to their parts."""
        self._zero.empty_partition_cache()

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        super().load_state_dict(saved)
        self.reshard()

    def _set_weight(self, parameter: nn.Parameter) -> None:
        from deepspeed.utils import safe_set_local_fp32_param

        safe_set_local_fp32_param(parameter, _part(parameter).held)

    def _moment(self, parameter: nn.Parameter, name: str) -> Part:
        from deepspeed.utils import safe_get_local_optimizer_state

        return Part(safe_get_local_optimizer_state(parameter, name), _part(parameter).shape)

    def _set_moment(self, parameter: nn.Parameter, name: str, value: Any) -> None:
        from deepspeed.utils import safe_set_local_optimizer_state

        held = torch.zeros_like(_part(parameter).held) if value is None else value.held
        safe_set_local_optimizer_state(parameter, held, name)

    def _flats(self, group: int) -> list[Tensor]:
        owners = self._zero.sub_group_to_group_id
        return [flat for number, flat in enumerate(self._zero.fp32_partitioned_groups_flat) if owners[number] == group]

    def _make_moments(self) -> None:
        for group in range(len(self.param_groups)):
            for flat in self._flats(group):
                self._zero.optimizer.state[flat] = zero_moments(flat)


def _part(parameter: nn.Parameter) -> Part:
    part = part_of(parameter)
    assert part is not None, "DeepSpeed has divided all parameters"
    return part


def _output_layers(policy: Policy) -> Iterator[nn.Module]:
    """The policy's and the reference's, which may be the same."""
    for reference in (False, True):
        with policy.scorer(reference) as model:
            yield model.get_output_embeddings()
