"""Several processes, one run: who does which part of a step, and how the parts become one again.

Every process sees the whole step: all answers, all feedback, all scores. They are small, so they are gathered, and what
is computed from them (advantages, metrics, decisions to stop) is the same everywhere. Only the work is divided: each
process samples and asks the critic about its own prompts, and scores and learns from its own rows. So nothing that is
learned depends on how many processes there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TypeVar, cast

import torch
from accelerate import Accelerator
from accelerate.utils import DistributedType, InitProcessGroupKwargs, gather_object
from torch import Tensor, nn
from transformers.integrations.deepspeed import unset_hf_deepspeed_config

from text2grad.distributed.launch import process_count
from text2grad.distributed.parallelism import Parallelism, asked_for, requested_parallelism
from text2grad.errors import SharedError, UserError

T = TypeVar("T")
R = TypeVar("R")
PATIENCE = timedelta(hours=2)  # one process may wait so long for another, whose critic is slow
BUCKET = 2**25  # gradients that are summed over the processes at once
WITHOUT_WEIGHTS: dict[Parallelism, Parallelism] = {
    "fsdp2": "none",
    "zero3": "zero",
}  # there are no weights to divide alone
UNSUPPORTED = (DistributedType.MEGATRON_LM, DistributedType.XLA)


def make_accelerator(bf16: bool, trackers: Sequence[str] = (), tracked_in: Path | None = None) -> Accelerator:
    """Accelerate's idea of the machine; launched processes without a GPU are run on the CPU, and talk over gloo.

    trackers: that metrics are logged to. tracked_in: the folder of those that write files.
    """
    accelerator = Accelerator(
        # DeepSpeed would make bfloat16 weights of it; there autocast is left to the policy.
        mixed_precision="bf16" if bf16 and not asked_for("DEEPSPEED") else "no",
        cpu=process_count() > 1 and not torch.accelerator.is_available(),
        kwargs_handlers=[InitProcessGroupKwargs(timeout=PATIENCE)],
        log_with=list(trackers) or None,
        project_dir=tracked_in,
    )
    if asked_for("DEEPSPEED"):
        # Or Transformers would load all models in DeepSpeed's parts, a critic's too; the policy is divided once made.
        unset_hf_deepspeed_config()  # type: ignore[no-untyped-call]
    return accelerator


def use_device(accelerator: Accelerator) -> None:
    """Make the process's GPU the current one; every new thread starts on the first, which a lone process uses."""
    if accelerator.device.index is not None:
        torch.accelerator.set_device_index(accelerator.device.index)


@dataclass(frozen=True)
class Processes:
    """The processes of a run, seen from one of them.

    division: what is divided among them, see `requested_parallelism`.
    """

    index: int = 0
    count: int = 1
    division: Parallelism = "none"

    @classmethod
    def of(cls, accelerator: Accelerator) -> Processes:
        """The processes that Accelerate has connected; its launcher says what is divided among them."""
        if accelerator.distributed_type in UNSUPPORTED:
            raise UserError(
                f"training under {accelerator.distributed_type.value} is not supported; launch with one of the files "
                f"in configs/accelerate"
            )
        division = requested_parallelism()
        if accelerator.num_processes == 1:
            division = WITHOUT_WEIGHTS.get(division, division)
        return cls(accelerator.process_index, accelerator.num_processes, division)

    @property
    def is_main(self) -> bool:
        """Whether this is the process that writes the run's folder."""
        return self.index == 0

    def own(self, items: int, group: int = 1) -> range:
        """This process's share of so many items: neighbours, in whole groups."""
        groups = items // group
        return range(groups * self.index // self.count * group, groups * (self.index + 1) // self.count * group)

    def gather(self, items: Sequence[T]) -> list[T]:
        """Everyone's items, in the order of the processes."""
        gathered: list[T] = gather_object(list(items)) if self.count > 1 else list(items)
        return gathered

    def share(self, outcome: T | UserError) -> list[T]:
        """Everyone's outcomes, in the order of the processes. Where one is an error, it is everyone's."""
        outcomes = self.gather([outcome])
        errors = [found for found in outcomes if isinstance(found, UserError)]
        if errors:
            raise errors[0] if self.is_main else SharedError(str(errors[0]))
        return [found for found in outcomes if not isinstance(found, UserError)]

    def together(self, work: Callable[[], T]) -> list[T]:
        """What every process makes of `work`, in order. A UserError of one ends all of them, instead of one waiting."""
        return self.share(attempt(work))

    def map(self, work: Callable[[list[T]], list[R]], items: Sequence[T]) -> list[R]:
        """`work` on every item, each process on its share, if it has one; returns all results, in the items' order."""
        own = [items[i] for i in self.own(len(items))]
        parts = self.together(lambda: work(own) if own else [])
        return [result for part in parts for result in part]

    def on_main(self, work: Callable[[], T]) -> T:
        """The main process's result, on every process. Nobody goes on before it is there."""
        return self.together(lambda: work() if self.is_main else cast(T, None))[0]

    def agree(self, value: T) -> T:
        """The main process's value, on every process."""
        return self.on_main(lambda: value)

    def sum(self, figures: Sequence[float]) -> list[float]:
        """The sums over all processes; the same on each, to the last bit."""
        return [sum(column) for column in zip(*self.gather([figures]), strict=True)]

    def rows(self, lengths: Sequence[int]) -> list[int]:
        """Which rows this process scores or learns from. lengths: of every row of the step, in tokens."""
        return deal(lengths, self.count)[self.index]

    def in_step(self, passes: list[T], idle: T) -> list[T]:
        """This process's passes, and idle ones after them where something is divided and others have more.

        Those gather weights or reduce gradients in every pass, and would wait for this process for ever.
        """
        if self.division == "none":
            return passes
        return passes + [idle] * (max(self.gather([len(passes)])) - len(passes))

    @property
    def loss_scale(self) -> float:
        """What to multiply a loss with whose gradients are to be summed: FSDP and DeepSpeed take their mean."""
        return float(self.count) if self.division != "none" else 1.0

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Put the sum of everyone's gradients in the place of this process's. FSDP has done so in the backward pass.

        Once for all micro-batches of a pass, so processes may have different numbers of them, or none.
        """
        if self.count == 1 or self.division != "none":
            return
        trained = list(parameters)
        have = self.gather([[p.grad is not None for p in trained]])
        used = [p for p, *anyone in zip(trained, *have, strict=True) if any(anyone)]
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in used]
        for bucket in _buckets(gradients):
            flat = torch.cat([gradient.flatten() for gradient in bucket])
            torch.distributed.all_reduce(flat)
            for gradient, summed in zip(bucket, torch.split(flat, [g.numel() for g in bucket]), strict=True):
                gradient.copy_(summed.view_as(gradient))
        for parameter, gradient in zip(used, gradients, strict=True):
            parameter.grad = gradient


SINGLE_PROCESS = Processes()


def attempt(work: Callable[[], T]) -> T | UserError:
    """The result of `work`, or the UserError that it ended with, to be told to the other processes."""
    try:
        return work()
    except UserError as error:
        return error


def deal(lengths: Sequence[int], players: int) -> list[list[int]]:
    """The rows of each process: the longest first, forth and back, so that all get about as many tokens."""
    order = sorted(range(len(lengths)), key=lambda row: (-lengths[row], row))
    turn = 2 * players
    return [sorted([*order[i::turn], *order[turn - 1 - i :: turn]]) for i in range(players)]


def _buckets(tensors: Sequence[Tensor]) -> list[list[Tensor]]:
    """Neighbours of one dtype, at most BUCKET elements together, at least one tensor each."""
    buckets: list[list[Tensor]] = []
    room = 0
    for tensor in tensors:
        if not buckets or tensor.numel() > room or tensor.dtype != buckets[-1][-1].dtype:
            buckets.append([])
            room = BUCKET
        buckets[-1].append(tensor)
        room -= tensor.numel()
    return buckets
