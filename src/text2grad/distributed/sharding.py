"""Weights in parts, and whole again: every process holds a share of each weight, by FSDP2 or by ZeRO's stage 3.

For FSDP2 Accelerate's launcher says that it is wanted and how; the sharding itself is torch's. Accelerate's own would
leave out processes on the CPU, and knows nothing of the reference. Stage 3 is DeepSpeed's, see zero3.py.
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

from text2grad.distributed.parts import Part, part_of
from text2grad.distributed.processes import Processes
from text2grad.errors import UserError
from text2grad.models.policy import Policy


class InPlace:
    """Every process holds all weights, so the policy samples as it is."""

    @contextmanager
    def filled(self, policy: Policy, reference: bool) -> Iterator[Policy]:
        yield policy


def place(policy: Policy, accelerator: Accelerator, processes: Processes) -> FullWeights:
    """Bring the policy to its device or devices, in place, and say what to sample from."""
    _refuse_different_weights(policy, processes)
    full_weights: FullWeights = InPlace()
    if processes.division in ("fsdp2", "zero3"):
        full_weights = Replica(policy)
    if processes.division == "fsdp2":
        shard(policy, accelerator)
    # Evaluation mode leaves the gradients to us: they are summed once a pass, not in every backward.
    accelerator.prepare_model(policy, device_placement=processes.division != "fsdp2", evaluation_mode=True)
    return full_weights


def _refuse_different_weights(policy: Policy, processes: Processes) -> None:
    trained = policy.trainable().values()
    sums = processes.gather([[float(p.detach().double().sum()) for p in trained] if processes.count > 1 else []])
    if any(other != sums[0] for other in sums):
        raise UserError("the processes started from different weights; give all of them the same model, from a file")


def shard(policy: Policy, accelerator: Accelerator) -> None:
    """Split the policy's weights over the processes, in place: a unit for each layer, and one for the rest.

    The frozen reference is split alike. Weights keep their dtype; what is computed in bfloat16 is autocast's business,
    as without sharding.
    """
    plugin = FullyShardedDataParallelPlugin()  # as the launcher's settings describe it
    mesh = init_device_mesh(accelerator.device.type, (accelerator.num_processes,))
    layers = set(policy.model._no_split_modules or ())
    for module in list(policy.modules()):
        if type(module).__name__ in layers:
            fully_shard(module, mesh=mesh, reshard_after_forward=plugin.reshard_after_forward)
    fully_shard(policy, mesh=mesh)


def reshard(policy: nn.Module) -> None:
    """Drop the weights that passes without a backward have left gathered.

    Otherwise the next pass would use them as they are, whatever was written to the weights' shares in between.
    """
    for module in policy.modules():
        if isinstance(module, FSDPModule):
            module.reshard()


@torch.no_grad()
def whole(tensor: Tensor | Part) -> Tensor:
    """All of a tensor, without a gradient; where it is sharded, every process must ask for it."""
    if isinstance(tensor, Part):
        return tensor.whole()
    if isinstance(tensor, DTensor):
        return tensor.full_tensor()
    part = part_of(tensor)
    return tensor.detach() if part is None else part.whole()


def gathered(tensors: Mapping[str, Tensor | Part], keep: bool) -> dict[str, Tensor]:
    """Whole tensors on the CPU; one is gathered at a time, and nothing is kept where `keep` is False."""
    kept = {}
    for name, tensor in tensors.items():
        complete = whole(tensor)
        if keep:
            kept[name] = complete.cpu()
    return kept


def shape_of(tensor: Tensor) -> torch.Size:
    """The shape of all of a tensor."""
    part = part_of(tensor)
    return tensor.shape if part is None else part.shape


def own_share(tensor: Tensor) -> Tensor:
    """What this process holds of a tensor, in the memory where it holds it."""
    part = part_of(tensor)
    return tensor if part is None else part.held


@torch.no_grad()
def put(tensor: Tensor, place: Tensor) -> None:
    """Write a whole tensor, which every process has, over `place`, each process its own share."""
    share = laid_out_like(tensor, place)
    own_share(place).copy_(share.held if isinstance(share, Part) else share)


def laid_out_like(tensor: Tensor, model: Tensor) -> Tensor | Part:
    """A whole tensor, which every process has, split as `model` is."""
    if tensor.shape != shape_of(model):
        return tensor
    part = part_of(model)
    if part is not None:
        return part.cut(tensor)
    if not isinstance(model, DTensor):
        return tensor
    return distribute_tensor(tensor.to(model.device), model.device_mesh, model.placements, src_data_rank=None)


class Replica:
    """The policy with whole weights on every process, for as long as answers are sampled.

    Decoding loops differ in length from process to process, so the layers cannot gather their weights as they go, as
    they do in a pass. They are gathered once, into an empty shell of the policy, and dropped afterwards: sampling takes
    the memory of the whole model, but no messages and no hooks stand between its tokens.
    """

    def __init__(self, policy: Policy) -> None:
        """policy: before it is sharded. Nothing is copied but its buffers."""
        memo: dict[int, object] = {
            id(p): nn.Parameter(torch.empty_like(p, device="meta"), requires_grad=False) for p in policy.parameters()
        }
        self._shell: Policy = copy.deepcopy(policy, memo)
        self._empty = {name: p.detach() for name, p in self._shell.named_parameters(remove_duplicate=False)}

    @contextmanager
    def filled(self, policy: Policy, reference: bool) -> Iterator[Policy]:
        """The policy, or its reference, as they are now. Every process must ask for it."""
        wanted = "_reference." if reference and policy.has_reference_copy else "model."
        complete: dict[int, Tensor] = {}  # tied weights are gathered once
        state = {}
        for name, parameter in policy.named_parameters(remove_duplicate=False):
            if name.startswith(wanted):
                if id(parameter) not in complete:
                    complete[id(parameter)] = whole(parameter)
                state[name] = complete[id(parameter)]
        device = next(iter(complete.values())).device
        for buffer in self._shell.buffers():
            buffer.data = buffer.data.to(device)
        self._shell.load_state_dict(state, strict=False, assign=True)
        try:
            yield self._shell
        finally:
            self._shell.load_state_dict(self._empty, strict=False, assign=True)


FullWeights = Replica | InPlace  # how a policy is asked for all of its weights
