"""Everything a run needs to go on as if it had never stopped: trained weights, optimiser state, counters.

Random numbers need no state: their streams are keyed by step (`streams.py`). Tensors are safetensors, the rest JSON.
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
from text2grad.distributed.parts import Part
from text2grad.distributed.processes import SINGLE_PROCESS, Processes
from text2grad.distributed.sharding import gathered, laid_out_like, put, shape_of
from text2grad.errors import UserError
from text2grad.files import recover_folder, replace_folder
from text2grad.models.policy import Policy


def save_checkpoint(
    folder: Path,
    policy: Policy,
    optimizer: torch.optim.Optimizer,
    state: Mapping[str, Any],
    processes: Processes = SINGLE_PROCESS,
) -> None:
    """Replace the checkpoint in `folder`; a kill at any moment leaves the old or the new one whole.

    The main process writes it, whole, and all have to take part: what is on disk does not tell how many there were.
    """
    weights = gathered(policy.trainable(), keep=processes.is_main)
    moments = gathered(_flatten(optimizer), keep=processes.is_main)

    def fill(new: Path) -> None:
        save_tensors(new / "policy.safetensors", weights)
        save_tensors(new / "optimizer.safetensors", moments)
        (new / "trainer_state.json").write_text(json.dumps(state), encoding="utf-8")

    processes.on_main(lambda: replace_folder(folder, fill))


def load_checkpoint(folder: Path, policy: Policy, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Put weights and optimiser state back in place and return the rest."""
    recover_folder(folder)
    if not (folder / "trainer_state.json").is_file():
        raise UserError(f"{folder}: no checkpoint to resume from; start the run without --resume")
    saved = load_file(folder / "policy.safetensors")
    trainable = policy.trainable()
    if {k: v.shape for k, v in saved.items()} != {k: shape_of(v) for k, v in trainable.items()}:
        raise UserError(f"{folder}: the checkpoint is of another model or adapter; resume with the run's own settings")
    for name, parameter in trainable.items():
        put(saved[name], parameter)
    _unflatten(optimizer, load_file(folder / "optimizer.safetensors"))
    state: dict[str, Any] = json.loads((folder / "trainer_state.json").read_text(encoding="utf-8"))
    return state


def save_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    """safetensors, with the operating system's errors as OSError (the library wraps them in its own)."""
    try:
        save_file({name: tensor.contiguous().cpu() for name, tensor in tensors.items()}, path)
    except SafetensorError as error:
        code = re.search(r"os error (\d+)", str(error))
        if code is None:
            raise
        raise OSError(int(code[1]), str(error), str(path)) from error


def _flatten(optimizer: torch.optim.Optimizer) -> dict[str, Tensor | Part]:
    state = optimizer.state_dict()["state"]
    return {f"{index}.{name}": tensor for index, entry in state.items() for name, tensor in entry.items()}


def _unflatten(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    trained = optimizer_parameters(optimizer)
    state: dict[int, dict[str, Tensor | Part]] = {}
    for key, tensor in tensors.items():
        index, name = key.split(".", 1)
        state.setdefault(int(index), {})[name] = laid_out_like(tensor, trained[int(index)])
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
