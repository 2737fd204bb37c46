"""Checkpoints from which a run resumes exactly: trained weights, optimiser state, counters.

Random numbers need no state: streams are keyed by step (`rollout/rng.py`). Tensors are safetensors, the rest JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from text2grad.distributed.learner import optimizer_parameters
from text2grad.distributed.processes import SINGLE_PROCESS, Processes
from text2grad.distributed.sharding import copy_full_tensor, gather_full_tensors, shard_like
from text2grad.errors import UserError
from text2grad.files import replace_folder
from text2grad.models.policy import Policy


def save_checkpoint(
    folder: Path,
    policy: Policy,
    optimizer: torch.optim.Optimizer,
    state: Mapping[str, Any],
    processes: Processes = SINGLE_PROCESS,
) -> None:
    """Replace the checkpoint in `folder`; after a kill at any moment the old or the new one is complete.

    A collective call. The main process writes full tensors, so a run can resume on another number of processes.
    """
    weights = gather_full_tensors(policy.trainable(), keep=processes.is_main)
    moments = gather_full_tensors(_flatten(optimizer), keep=processes.is_main)

    def fill(new: Path) -> None:
        save_tensors(new / "policy.safetensors", weights)
        save_tensors(new / "optimizer.safetensors", moments)
        (new / "trainer_state.json").write_text(json.dumps(state), encoding="utf-8")

    processes.run_on_main(lambda: replace_folder(folder, "checkpoint", fill))


def load_checkpoint(folder: Path, policy: Policy, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Load weights and optimiser state in place and return the `state` that was saved with them."""
    if not (folder / "trainer_state.json").is_file():
        raise UserError(f"{folder}: no checkpoint to resume from; start the run without --resume")
    saved = load_file(folder / "policy.safetensors")
    trainable = policy.trainable()
    if {k: v.shape for k, v in saved.items()} != {k: v.shape for k, v in trainable.items()}:
        raise UserError(f"{folder}: the checkpoint is of another model or adapter; resume with the run's own settings")
    for name, parameter in trainable.items():
        copy_full_tensor(saved[name], parameter)
    _unflatten(optimizer, load_file(folder / "optimizer.safetensors"))
    state: dict[str, Any] = json.loads((folder / "trainer_state.json").read_text(encoding="utf-8"))
    return state


def save_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    """Write a safetensors file; errors of the operating system, which the library wraps, are raised as OSError."""
    try:
        save_file({name: tensor.contiguous().cpu() for name, tensor in tensors.items()}, path)
    except SafetensorError as error:
        code = re.search(r"os error (\d+)", str(error))
        if code is None:
            raise
        raise OSError(int(code[1]), str(error), str(path)) from error


def _flatten(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    state = optimizer.state_dict()["state"]
    return {f"{index}.{name}": tensor for index, entry in state.items() for name, tensor in entry.items()}


def _unflatten(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    parameters = optimizer_parameters(optimizer)
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        index, name = key.split(".", 1)
        state.setdefault(int(index), {})[name] = shard_like(tensor, parameters[int(index)])
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
