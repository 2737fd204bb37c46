"""The launcher's environment variables: rank, world size, and which parallelism `accelerate launch` requests."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from text2grad.errors import UserError

Parallelism = Literal["ddp", "fsdp2"]
CONFIGS = Path(__file__).parents[1] / "config" / "accelerate"


def world_size() -> int:
    """Return the number of launched processes; 1 without a launcher."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def is_main_process() -> bool:
    """Return whether this process writes files and prints to the terminal."""
    return os.environ.get("RANK", "0") == "0"


def is_local_main_process() -> bool:
    """Return whether this process reports the errors of its machine."""
    return os.environ.get("LOCAL_RANK", "0") == "0"


def requested_parallelism() -> Parallelism:
    """Return what the launcher requests; settings that are not supported raise before a model is loaded.

    `ddp`: every process holds all weights, gradients and optimiser state. `fsdp2`: every process holds a shard of them.
    """
    if _is_true("ACCELERATE_USE_DEEPSPEED"):
        raise UserError(
            f"policy training does not support DeepSpeed; launch with --config_file {CONFIGS / 'fsdp2.yaml'}"
        )
    if not _is_true("ACCELERATE_USE_FSDP"):
        return "ddp"
    _check_fsdp()
    return "fsdp2"


def _check_fsdp() -> None:
    from accelerate.utils import FullyShardedDataParallelPlugin

    plugin = FullyShardedDataParallelPlugin()
    if plugin.fsdp_version != 2:
        raise UserError(f"fsdp_version is 1, which is not supported; set it to 2, as in {CONFIGS / 'fsdp2.yaml'}")
    if plugin.activation_checkpointing:
        raise UserError("set policy.gradient_checkpointing instead of fsdp_activation_checkpointing")
    for name in ("OFFLOAD_PARAMS", "CPU_RAM_EFFICIENT_LOADING"):
        if _is_true(f"FSDP_{name}"):
            raise UserError(f"fsdp_{name.lower()} is not supported; set it to false")


def _is_true(variable: str) -> bool:
    return os.environ.get(variable, "false").lower() == "true"
