"""Models by name, run folders included: wherever a command takes a model, it also takes a run that trained one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import yaml
from peft import PeftModel
from peft.tuners.tuners_utils import BaseTunerLayer
from torch import nn

from text2grad.checkpoint.run_folder import RunFolder
from text2grad.errors import UserError
from text2grad.folders import MANIFEST, find_damage
from text2grad.models.loading import DEFAULT_MODEL, load_model

if TYPE_CHECKING:
    from transformers import PreTrainedModel

ADAPTER_CONFIG = "adapter_config.json"


@dataclass(frozen=True)
class ModelSource:
    """Where the weights of a model are.

    base: `smollm2`, a hub name or a folder, with weights. adapter: the folder of the adapter on top of them, None for
    none. tokenizer: what to load the tokenizer from.
    """

    base: str
    adapter: Path | None
    tokenizer: str


def find_model(name: str | Path) -> ModelSource:
    """Find the weights of a model name, a folder with a model or an adapter, or a run folder.

    Raises UserError for a folder that does not exist, and for a run without a trained model or with a damaged one.
    """
    run = RunFolder(Path(name))
    if not is_run(run):
        folder = Path(name)
        if (folder / ADAPTER_CONFIG).is_file() and not (folder / "config.json").is_file():
            return ModelSource(_named_base(folder), folder, str(folder))
        _check_exists(str(name))
        return ModelSource(str(name), None, str(name))
    final = run.final
    if not (final / "config.json").is_file() and not (final / ADAPTER_CONFIG).is_file():
        raise UserError(f"{run.root}: no trained model; a finished run has one in {final}")
    if (final / MANIFEST).exists() and (damage := find_damage(final, "model")):
        raise UserError(f"{damage}; `text2grad run --resume` writes it anew")
    if (final / ADAPTER_CONFIG).is_file():
        return ModelSource(_base_of_run(run), final, str(final))
    return ModelSource(str(final), None, str(final))


def _check_exists(name: str) -> None:
    """Refuse what looks like a folder and does not exist; any other name may be one of the hub."""
    path, is_explicit = Path(name), name.startswith(("./", "../", "/"))
    if "/" in name and not path.exists() and (is_explicit or Path(path.parts[0]).is_dir()):
        raise UserError(f"{name}: no such folder; give a run, a folder with a model, {DEFAULT_MODEL}, or a hub name")


def is_run(run: RunFolder) -> bool:
    """Whether a folder is that of a run, finished or not."""
    return run.final.is_dir() or run.metrics.is_file() or (run.config.is_file() and run.checkpoint.parent.is_dir())


def load_adapted(
    source: ModelSource, dtype: torch.dtype = torch.float32, is_trainable: bool = False
) -> PreTrainedModel | PeftModel:
    """Load the model, with its adapter on top where it has one."""
    model = load_model(source.base, dtype)
    if source.adapter is None:
        return model
    return PeftModel.from_pretrained(model, source.adapter, is_trainable=is_trainable, use_safetensors=True)


def load_merged(source: ModelSource) -> Any:
    """Load a plain PreTrainedModel in float32, with the adapter, if there is one, merged into the weights."""
    model: Any = load_adapted(source)
    if source.adapter is None:
        return model
    _untie(model.get_base_model())
    return model.merge_and_unload().requires_grad_(True)  # as of any model that is loaded


def _base_of_run(run: RunFolder) -> str:
    """Return the base of a run's adapter: as the run's config names it, or as the adapter does for runs without one.

    A run that continued the adapter of another has the base of that one.
    """
    if not run.config.is_file():
        return _named_base(run.final)
    try:
        name = str(yaml.safe_load(run.config.read_text(encoding="utf-8"))["model"]["name"])
    except (yaml.YAMLError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise UserError(f"{run.config} is damaged: it has no model.name; restore it from a copy") from error
    if is_run(RunFolder(Path(name))):
        return find_model(name).base
    # The adapter of a run that continued another, now gone, knows its base too, by the folder that it was loaded from.
    return name if name == DEFAULT_MODEL or Path(name).exists() else _named_base(run.final)


def _named_base(folder: Path) -> str:
    path = folder / ADAPTER_CONFIG
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["base_model_name_or_path"])
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is damaged: it names no base_model_name_or_path; restore it from a copy") from error


def _untie(model: Any) -> None:
    """Untie input and output embeddings where the adapter changes only one of them."""
    embeddings = [model.get_input_embeddings(), model.get_output_embeddings()]
    adapted = [isinstance(layer, BaseTunerLayer) for layer in embeddings]
    if model.config.tie_word_embeddings and any(adapted):
        layer = embeddings[1].get_base_layer() if adapted[1] else embeddings[1]
        layer.weight = nn.Parameter(layer.weight.detach().clone())
        model.config.tie_word_embeddings = False
