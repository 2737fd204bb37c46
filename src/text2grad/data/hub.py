"""Datasets of the Hugging Face hub, and those saved by the `datasets` library."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from text2grad.data.split import Split
from text2grad.errors import UserError

if TYPE_CHECKING:
    from datasets import Dataset

HUB = "hf:"
_REFERENCE = re.compile(r"hf:(?P<name>[\w.-]+(?:/[\w.-]+)?)(?::(?P<config>[^#]+))?(?:#(?P<split>.+))?")
_HELD_OUT = ("validation", "valid", "dev", "eval", "test")  # in the order in which they are taken
_SAVED = ("dataset_dict.json", "state.json")  # what `save_to_disk` writes for several splits, and for one


class HubReference(NamedTuple):
    """A dataset of the hub; None: its default configuration, and the split that the caller needs."""

    name: str
    config: str | None = None
    split: str | None = None


def parse_reference(source: str) -> HubReference:
    """Parse `hf:OWNER/NAME[:config][#split]`."""
    found = _REFERENCE.fullmatch(source)
    if found is None:
        raise UserError(f"{source} is not of the form hf:OWNER/NAME[:config][#split], as hf:openai/gsm8k:main#train")
    return HubReference(**found.groupdict())


def load_hub_dataset(source: str, split: Split) -> Dataset:
    """Load a split of `hf:OWNER/NAME[:config][#split]`, from the cache where it was loaded before.

    The split may be a slice, as `train[:1000]`. Without one, see `choose_split`.
    """
    reference = parse_reference(source)
    return load_split(source, split, reference.split, path=reference.name, name=reference.config)


def load_split(source: str, split: Split, split_name: str | None = None, **options: Any) -> Dataset:
    """Load with `datasets.load_dataset(**options)`; raise UserError, starting with `source`, where that fails."""
    import datasets

    try:
        loaded = datasets.load_dataset(**options, split=split_name)
    except Exception as error:  # any: not found, gated, no network, no such configuration or split, damaged files
        reason = str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
        raise UserError(
            f"{source} cannot be loaded ({reason}); check its name, configuration and split, and the network. Without "
            f"one, load it on another machine and copy ~/.cache/huggingface, or give a file of it"
        ) from error
    return loaded if split_name else choose_split(loaded, split, source)


def load_local_dataset(folder: Path, split_name: str | None, split: Split) -> Dataset:
    """Load a folder of `save_to_disk`, or of data files as in a dataset repository (Parquet, JSON lines, CSV)."""
    import datasets

    if not any((folder / name).is_file() for name in _SAVED):
        if not any(path.is_file() for path in folder.rglob("*")):
            raise UserError(f"{folder}: an empty folder; give a file, or the folder of a dataset")
        return load_split(str(folder), split, split_name, path=str(folder))
    try:
        loaded = datasets.load_from_disk(str(folder))
    except Exception as error:  # any: Arrow's own errors
        raise UserError(f"{folder}: the saved dataset cannot be read ({error}); save it again") from error
    if split_name is None:
        return choose_split(loaded, split, str(folder))
    if not isinstance(loaded, dict) or split_name not in loaded:
        there = ", ".join(loaded) if isinstance(loaded, dict) else "no splits"
        raise UserError(f"{folder}: no split {split_name}; there are {there}")
    return loaded[split_name]


def choose_split(loaded: Any, split: Split, source: str) -> Dataset:
    """Return the dataset itself if it has no splits; else `train`, or the first split that is meant for evaluation.

    Prompts to train on may come from the only split, whatever its name; held-out prompts never come from `train`.
    """
    if not isinstance(loaded, dict):
        return loaded
    names = list(loaded)
    usual = ("train",) if split == "train" else _HELD_OUT
    found = [name for name in usual if name in loaded] or (names if split == "train" and len(names) == 1 else [])
    if not found:
        raise UserError(
            f"{source}: which split? There are {', '.join(names)}; name one, as in {source}#{names[0]}, or a part of "
            f"a dataset of the hub, as in {source}#{names[0]}[90%:]"
        )
    return loaded[found[0]]
