"""In which precision a device computes fastest."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import torch

CPU_INFO = Path("/proc/cpuinfo")  # of Linux; elsewhere processors compute in float32
BF16_UNITS = frozenset({"avx512_bf16", "amx_bf16", "bf16"})  # as x86 and ARM processors list them


def use_bf16(wanted: bool | None, device: str) -> bool:
    """Return whether to compute in bfloat16 on a device type, as `cpu` or `cuda`. wanted: None leaves it to the device.

    A processor without units for bfloat16 converts to float32 and back, which takes several times as long.
    """
    if wanted is not None:
        return wanted
    return device != "cpu" or has_bf16_units()


def device_type() -> str:
    """Return the type of device that models are trained on unless told otherwise: the accelerator's, else `cpu`."""
    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return "cpu" if accelerator is None else accelerator.type


@cache
def has_bf16_units() -> bool:
    """Whether this machine's processor multiplies in bfloat16."""
    return not BF16_UNITS.isdisjoint(_processor_features())


def _processor_features() -> set[str]:
    if not CPU_INFO.is_file():
        return set()
    lines = CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines()
    listed = (line.partition(":") for line in lines)
    return {feature for name, _, value in listed if name.strip() in ("flags", "Features") for feature in value.split()}
