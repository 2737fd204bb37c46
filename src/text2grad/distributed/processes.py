"""The processes of a run: how they split a step and exchange results.

Every process holds the whole step: all completions, feedback and scores. They are small, so they are gathered, and what
is computed from them (advantages, metrics, decisions to stop) is identical everywhere. Only the work is split: each
process samples and critiques its own prompts, and scores and trains on its own rows. So a run does not depend on the
number of processes.
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
from torch import nn

from text2grad.distributed.environment import CONFIGS, Parallelism, requested_parallelism, world_size
from text2grad.errors import SharedError, UserError
from text2grad.models.precision import device_type, use_bf16

T = TypeVar("T")
R = TypeVar("R")
COLLECTIVE_TIMEOUT = timedelta(hours=2)  # a process may wait this long for another one's slow critic
UNSUPPORTED = (DistributedType.MEGATRON_LM, DistributedType.XLA)


def make_accelerator(bf16: bool | None, trackers: Sequence[str] = (), tracker_dir: Path | None = None) -> Accelerator:
    """Create the Accelerator; processes launched without a GPU run on the CPU and communicate over gloo.

    bf16: whether to compute in bfloat16; None leaves it to the device. trackers: names of the trackers that metrics are
    logged to. tracker_dir: folder of those that write files.
    """
    requested_parallelism()  # unsupported settings are rejected before Accelerate acts on them
    return Accelerator(
        mixed_precision="bf16" if use_bf16(bf16, device_type()) else "no",
        cpu=world_size() > 1 and not torch.accelerator.is_available(),
        kwargs_handlers=[InitProcessGroupKwargs(timeout=COLLECTIVE_TIMEOUT)],
        log_with=list(trackers) or None,
        project_dir=tracker_dir,
    )


def set_current_device(accelerator: Accelerator) -> None:
    """Make the process's GPU the current one; every new thread starts on GPU 0."""
    if accelerator.device.index is not None:
        torch.accelerator.set_device_index(accelerator.device.index)


@dataclass(frozen=True)
class Processes:
    """The process group of a run, seen from one rank."""

    rank: int = 0
    world_size: int = 1
    parallelism: Parallelism = "ddp"

    @classmethod
    def from_accelerator(cls, accelerator: Accelerator) -> Processes:
        """Return the processes that Accelerate has connected; a single one has nothing to shard."""
        if accelerator.distributed_type in UNSUPPORTED:
            raise UserError(
                f"training under {accelerator.distributed_type.value} is not supported; launch with one of the files "
                f"in {CONFIGS}"
            )
        parallelism = requested_parallelism() if accelerator.num_processes > 1 else "ddp"
        return cls(accelerator.process_index, accelerator.num_processes, parallelism)

    @property
    def is_main(self) -> bool:
        """Whether this process writes the run folder."""
        return self.rank == 0

    def local_slice(self, num_items: int, group_size: int = 1) -> range:
        """Return the indices of this process's contiguous share of the items, in whole groups."""
        groups = num_items // group_size
        start, stop = (groups * rank // self.world_size * group_size for rank in (self.rank, self.rank + 1))
        return range(start, stop)

    def gather(self, items: Sequence[T]) -> list[T]:
        """Return the items of all processes, in rank order."""
        gathered: list[T] = gather_object(list(items)) if self.world_size > 1 else list(items)
        return gathered

    def gather_or_raise(self, outcome: T | UserError) -> list[T]:
        """Return the outcomes of all processes, in rank order; an error of one is raised on all."""
        outcomes = self.gather([outcome])
        errors = [found for found in outcomes if isinstance(found, UserError)]
        if errors:
            raise errors[0] if self.is_main else SharedError(str(errors[0]))
        return [found for found in outcomes if not isinstance(found, UserError)]

    def run_on_all(self, work: Callable[[], T]) -> list[T]:
        """Run `work` on every process and return all results, in rank order; a UserError of one is raised on all."""
        return self.gather_or_raise(catch_user_error(work))

    def map(self, work: Callable[[list[T]], list[R]], items: Sequence[T]) -> list[R]:
        """Return `work(items)`, computed on each process's slice; not called for an empty slice."""
        local = [items[i] for i in self.local_slice(len(items))]
        results = self.run_on_all(lambda: work(local) if local else [])
        return [result for part in results for result in part]

    def run_on_main(self, work: Callable[[], T]) -> T:
        """Run `work` on the main process and return its result on every process, which wait for it."""
        return self.run_on_all(lambda: work() if self.is_main else cast(T, None))[0]

    def broadcast_from_main(self, value: T) -> T:
        """Return the main process's value on every process."""
        return self.run_on_main(lambda: value)

    def sum(self, values: Sequence[float]) -> list[float]:
        """Return the elementwise sums over all processes, bit-identical on each."""
        return [sum(column) for column in zip(*self.gather([values]), strict=True)]

    def pad_passes(self, passes: list[T], idle: T) -> list[T]:
        """Append idle passes until all processes have equally many, where weights are sharded.

        FSDP gathers weights and reduces gradients in every pass: with fewer passes than the others, a process would
        block them.
        """
        if self.parallelism == "ddp":
            return passes
        return passes + [idle] * (max(self.gather([len(passes)])) - len(passes))

    @property
    def loss_scale(self) -> float:
        """The factor for a loss whose gradients are to be summed over processes: FSDP averages them."""
        return float(self.world_size) if self.parallelism == "fsdp2" else 1.0

    def all_reduce_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace gradients by their sum over all processes; FSDP has done so in the backward pass.

        Called once for all micro-batches of a pass, so processes may have different numbers of them, or none.
        """
        if self.world_size == 1 or self.parallelism == "fsdp2":
            return
        trained = list(parameters)
        has_gradient = self.gather([[p.grad is not None for p in trained]])
        used = [p for p, *flags in zip(trained, *has_gradient, strict=True) if any(flags)]
        pending = []
        for parameter in used:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            pending.append(torch.distributed.all_reduce(parameter.grad, async_op=True))
        for work in pending:
            work.wait()


SINGLE_PROCESS = Processes()


def catch_user_error(work: Callable[[], T]) -> T | UserError:
    """Return the result of `work`, or the UserError that it raised, so that it can be sent to other processes."""
    try:
        return work()
    except UserError as error:
        return error


def balance_rows(lengths: Sequence[int], num_processes: int) -> list[list[int]]:
    """Assign rows to processes, longest first in alternating order, so that all get about as many tokens.

    lengths: tokens of every row of the step. Returns the rows of each process.
    """
    order = sorted(range(len(lengths)), key=lambda row: (-lengths[row], row))
    turn = 2 * num_processes
    return [sorted([*order[i::turn], *order[turn - 1 - i :: turn]]) for i in range(num_processes)]
