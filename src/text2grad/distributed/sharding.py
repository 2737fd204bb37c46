"""FSDP2: shard the policy's weights over the processes, and gather them again for sampling and saving.

Accelerate's launcher says that FSDP2 is requested and how; `fully_shard` is called here, since Accelerate's own wrapper
supports neither processes on the CPU nor the frozen reference.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from accelerate import Accelerator
from accelerate.utils import FullyShardedDataParallelPlugin
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from text2grad.distributed.processes import Processes
from text2grad.errors import UserError
from text2grad.models.policy import Policy


class FullPolicy:
    """The policy with full weights on every process: the policy itself, or a replica that is filled on demand.

    Decoding loops differ in length from process to process, so layers cannot gather sharded weights as they do in a
    training pass. All weights are gathered once, into a copy of the policy on the meta device, and freed afterwards:
    sampling takes the memory of the full model, but needs no collectives per token.
    """

    def __init__(self, policy: Policy, sharded: bool) -> None:
        """policy: before it is sharded. sharded: whether it will be; only buffers are copied."""
        self._policy = policy
        self._replica: Policy | None = None
        if sharded:
            memo: dict[int, object] = {
                id(p): nn.Parameter(torch.empty_like(p, device="meta"), requires_grad=False)
                for p in policy.parameters()
            }
            self._replica = copy.deepcopy(policy, memo)

    @contextmanager
    def summon(self, reference: bool) -> Iterator[Policy]:
        """Yield the policy with current full weights, of its reference only if `reference`. A collective call."""
        if self._replica is None:
            yield self._policy
            return
        empty = {name: p.detach() for name, p in self._replica.named_parameters(remove_duplicate=False)}
        prefix = "_reference." if reference and self._policy.has_reference_copy else "model."
        full: dict[int, Tensor] = {}  # tied weights are gathered once
        state = {}
        for name, parameter in self._policy.named_parameters(remove_duplicate=False):
            if name.startswith(prefix):
                if id(parameter) not in full:
                    full[id(parameter)] = gather_full_tensor(parameter)
                state[name] = full[id(parameter)]
        device = next(iter(full.values())).device
        for buffer in self._replica.buffers():
            buffer.data = buffer.data.to(device)
        self._replica.load_state_dict(state, strict=False, assign=True)
        try:
            yield self._replica
        finally:
            self._replica.load_state_dict(empty, strict=False, assign=True)


def place_policy(policy: Policy, accelerator: Accelerator, processes: Processes) -> FullPolicy:
    """Move the policy to its device, sharded where FSDP2 is requested, and return access to its full weights."""
    _refuse_different_weights(policy, processes)
    sharded = processes.parallelism == "fsdp2"
    full_policy = FullPolicy(policy, sharded)
    if sharded:
        shard_policy(policy, accelerator)
    # evaluation_mode: no DDP wrapper, since gradients are all-reduced once per pass, not in every backward.
    accelerator.prepare_model(policy, device_placement=not sharded, evaluation_mode=True)
    return full_policy


def _refuse_different_weights(policy: Policy, processes: Processes) -> None:
    trained = policy.trainable().values()
    sums = processes.gather([[float(p.detach().double().sum()) for p in trained] if processes.world_size > 1 else []])
    if any(other != sums[0] for other in sums):
        raise UserError("the processes started from different weights; give all of them the same model, from a file")


def shard_policy(policy: Policy, accelerator: Accelerator) -> None:
    """Apply `fully_shard` in place: one unit per layer, and one for the rest; the frozen reference alike.

    Weights keep their dtype; bfloat16 compute is left to autocast, as without sharding.
    """
    plugin = FullyShardedDataParallelPlugin()  # reads the launcher's settings
    mesh = init_device_mesh(accelerator.device.type, (accelerator.num_processes,))
    layers = set(policy.model._no_split_modules or ())
    for module in list(policy.modules()):
        if type(module).__name__ in layers:
            fully_shard(module, mesh=mesh, reshard_after_forward=plugin.reshard_after_forward)
    fully_shard(policy, mesh=mesh)


def reshard(policy: nn.Module) -> None:
    """Free the weights that passes without a backward have left gathered.

    Otherwise the next pass would use them, although the shards may have been written since.
    """
    for module in policy.modules():
        if isinstance(module, FSDPModule):
            module.reshard()


@torch.no_grad()
def gather_full_tensor(tensor: Tensor) -> Tensor:
    """Return the full tensor, detached. A collective call where it is sharded."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor.detach()


def gather_full_tensors(tensors: Mapping[str, Tensor], keep: bool) -> dict[str, Tensor]:
    """Return full tensors on the CPU, gathered one at a time; an empty dictionary where `keep` is False."""
    kept = {}
    for name, tensor in tensors.items():
        full = gather_full_tensor(tensor)
        if keep:
            kept[name] = full.cpu()
    return kept


@torch.no_grad()
def copy_full_tensor(source: Tensor, target: Tensor) -> None:
    """Copy a full tensor, which every process has, into `target`, each process into its own shard."""
    target.copy_(shard_like(source, target))


def shard_like(tensor: Tensor, template: Tensor) -> Tensor:
    """Shard a full tensor, which every process has, as `template` is sharded; other shapes are returned as they are."""
    if tensor.shape != template.shape or not isinstance(template, DTensor):
        return tensor
    return distribute_tensor(tensor.to(template.device), template.device_mesh, template.placements, src_data_rank=None)
