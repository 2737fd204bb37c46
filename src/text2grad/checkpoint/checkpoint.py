"""Checkpoints from which a run resumes exactly: trained weights, optimiser state, counters.

Random numbers need no state: streams are keyed by step (`rollout/rng.py`). Tensors are safetensors, the rest JSON.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from text2grad.checkpoint.run_folder import RunFolder
from text2grad.distributed.learner import optimizer_parameters
from text2grad.distributed.processes import SINGLE_PROCESS, Processes
from text2grad.distributed.sharding import copy_full_tensor, gather_full_tensors, shard_like
from text2grad.errors import UserError
from text2grad.files import unused_path
from text2grad.folders import check_replaceable, find_damage, recover_folder, replace_folder
from text2grad.models.policy import Policy

log = logging.getLogger(__name__)
KIND = "checkpoint"


def save_checkpoint(
    folder: Path,
    policy: Policy,
    optimizer: torch.optim.Optimizer,
    state: Mapping[str, Any],
    processes: Processes = SINGLE_PROCESS,
    previous: Path | None = None,
) -> None:
    """Replace the checkpoint in `folder`; after a kill at any moment the old or the new one is complete.

    A collective call. The main process writes full tensors, so a run can resume on another number of processes.
    previous: where the replaced checkpoint is kept.
    """
    weights = gather_full_tensors(policy.trainable(), keep=processes.is_main)
    moments = gather_full_tensors(_flatten(optimizer), keep=processes.is_main)

    def fill(new: Path) -> None:
        _save_tensors(new / "policy.safetensors", weights)
        _save_tensors(new / "optimizer.safetensors", moments)
        (new / "trainer_state.json").write_text(json.dumps(state), encoding="utf-8")

    processes.run_on_main(lambda: replace_folder(folder, KIND, fill, previous=previous))


def find_checkpoint(run: RunFolder) -> Path:
    """Return the last intact checkpoint of a run: `last`, else, with a warning, `previous`.

    A damaged one is moved away, since a damaged `last` would become the previous one with the next checkpoint.
    """
    last, previous = run.checkpoint, run.previous
    if not last.exists() and not previous.exists():
        raise UserError(f"{last}: no checkpoint to resume from; start the run without --resume")
    damage, damage_before = (find_damage(folder, KIND) for folder in (last, previous))
    if damage is not None and damage_before is not None:
        raise UserError(f"no checkpoint is intact: {damage}; {damage_before}; start again in another output_dir")
    for folder, found in ((last, damage), (previous, damage_before)):
        if found is not None and folder.exists():  # after a kill between two renames, only one exists
            set_aside(folder, found)
    return last if damage is None else previous


def check_models(run: RunFolder) -> None:
    """Set the saved models of a run aside where they are damaged; refuse folders of others in their place.

    Otherwise the run would fail when it writes them anew, at its end.
    """
    for folder in (run.best, run.final):
        recover_folder(folder)
        check_replaceable(folder, "model")
        if folder.exists() and any(folder.iterdir()) and (damage := find_damage(folder, "model")):
            set_aside(folder, damage)


def set_aside(folder: Path, damage: str) -> None:
    """Move a damaged folder to `damaged` beside it, with a warning."""
    aside = unused_path(folder.with_name("damaged"))
    folder.rename(aside)
    log.warning("%s; the folder is kept as %s, and the run resumes without it", damage, aside)


def load_checkpoint(folder: Path, policy: Policy, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Load weights and optimiser state in place and return the `state` that was saved with them."""
    saved = load_file(folder / "policy.safetensors")
    trainable = policy.trainable()
    if {k: v.shape for k, v in saved.items()} != {k: v.shape for k, v in trainable.items()}:
        raise UserError(f"{folder}: the checkpoint is of another model or adapter; resume with the run's own settings")
    for name, parameter in trainable.items():
        copy_full_tensor(saved[name], parameter)
    _unflatten(optimizer, load_file(folder / "optimizer.safetensors"))
    state: dict[str, Any] = json.loads((folder / "trainer_state.json").read_text(encoding="utf-8"))
    return state


def _save_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    save_file({name: tensor.contiguous().cpu() for name, tensor in tensors.items()}, path)


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
