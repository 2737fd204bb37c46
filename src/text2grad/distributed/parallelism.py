"""What the launcher's settings ask to divide among processes; what is not supported is refused before a model loads."""

from __future__ import annotations

import os
from typing import Literal

from accelerate.utils import DeepSpeedPlugin, FullyShardedDataParallelPlugin

from text2grad.errors import UserError

Parallelism = Literal["none", "fsdp2", "zero", "zero3"]

# What has DeepSpeed hold weights in plain parts only, and so what these settings must be.
PLAIN_PARTS = {"zero_hpz_partition_size": 1, "zero_quantized_nontrainable_weights": False}


def requested_parallelism() -> Parallelism:
    """`none`: each process holds all weights, gradients and moments. `fsdp2`: each holds a part of all of these.

    `zero`: each holds all weights, and a part of the rest, by DeepSpeed. `zero3`: as fsdp2, by DeepSpeed.
    """
    if asked_for("DEEPSPEED"):
        plugin = DeepSpeedPlugin()
        _check_deepspeed(plugin)
        return "zero3" if plugin.zero_stage == 3 else "zero"
    if asked_for("FSDP"):
        _check_fsdp(FullyShardedDataParallelPlugin())
        return "fsdp2"
    return "none"


def asked_for(what: Literal["DEEPSPEED", "FSDP"]) -> bool:
    """Whether `accelerate launch` was told to use it."""
    return os.environ.get(f"ACCELERATE_USE_{what}", "false").lower() == "true"


def _check_deepspeed(plugin: DeepSpeedPlugin) -> None:
    if plugin.zero_stage not in (1, 2, 3):
        raise UserError(f"DeepSpeed's zero_stage {plugin.zero_stage} is not supported; set it to 1, 2 or 3")
    for name in ("offload_optimizer_device", "offload_param_device"):
        if getattr(plugin, name) != "none":
            raise UserError(f"DeepSpeed's {name} is not supported; set it to none")
    for name, plain in PLAIN_PARTS.items():
        if plugin.get_value(f"zero_optimization.{name}", plain) != plain:
            raise UserError(f"DeepSpeed's {name} is not supported; leave it out")


def _check_fsdp(plugin: FullyShardedDataParallelPlugin) -> None:
    if plugin.fsdp_version != 2:
        raise UserError("fsdp_version is 1, which is not supported; set it to 2, as in configs/accelerate/fsdp2.yaml")
    if plugin.activation_checkpointing:
        raise UserError("set policy.gradient_checkpointing instead of fsdp_activation_checkpointing")
    for name in ("OFFLOAD_PARAMS", "CPU_RAM_EFFICIENT_LOADING"):
        if os.environ.get(f"FSDP_{name}", "false").lower() == "true":
            raise UserError(f"fsdp_{name.lower()} is not supported; set it to false")
