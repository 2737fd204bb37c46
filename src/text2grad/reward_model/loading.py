"""The files of a reward model, and where they are found: a folder, or the Hugging Face hub."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

from text2grad.errors import UserError
from text2grad.models.hub import HubUnreachableError, use_cache_only
from text2grad.reward_model.familiarity import Familiarity

SETTINGS_FILE, HEAD_FILE = "reward_model.json", "head.safetensors"
FAMILIARITY_FILE = "familiarity.safetensors"


def find_folder(name: str | Path) -> Path:
    """Return the folder of a reward model, downloaded where the name is one of the hub; UserError if there is none."""
    folder = Path(name)
    if folder.is_dir():
        return folder
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    patterns = ["*.json", "*.safetensors", "*.jinja"]
    try:
        return Path(snapshot_download(str(name), allow_patterns=patterns, local_files_only=use_cache_only(str(name))))
    except (HubUnreachableError, LocalEntryNotFoundError, HfHubHTTPError, HFValidationError) as error:
        raise UserError(
            f'reward model "{name}" cannot be found: give the folder that `text2grad reward train` wrote, or a Hugging '
            f"Face name that the hub or its cache has"
        ) from error


def read_settings(folder: Path) -> Any:
    """Return the settings of the model in a folder, not validated yet; UserError where it holds no reward model."""
    for name in (SETTINGS_FILE, HEAD_FILE):
        if not (folder / name).is_file():
            raise UserError(f"{folder} is not a reward model: it has no {name}; `text2grad reward train` writes one")
    path = folder / SETTINGS_FILE
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{path}: not valid JSON ({error}); restore the file, or train the model again") from error


def load_familiarity(folder: Path) -> Familiarity | None:
    """Return the familiarity that was saved with the model, if it has one."""
    path = folder / FAMILIARITY_FILE
    return Familiarity.from_state(safetensors.torch.load_file(path)) if path.is_file() else None


def parse_device(name: str | None) -> torch.device:
    """Return the device of this name, by default a GPU where there is one; UserError where it does not exist."""
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise UserError(f'"{name}" is not a device; give cpu, cuda or cuda:1') from error
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UserError(f'device "{name}" does not exist: this machine has {torch.cuda.device_count()} GPUs; give cpu')
    return device
