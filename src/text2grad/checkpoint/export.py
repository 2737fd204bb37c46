"""Export of a run: its adapter merged into the base, as a plain model that transformers loads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
import yaml
from peft import PeftModel
from peft.tuners.tuners_utils import BaseTunerLayer
from torch import nn

from text2grad.checkpoint.model_card import CARD, merged_card
from text2grad.checkpoint.run_folder import RunFolder
from text2grad.checkpoint.weights import write_weights
from text2grad.errors import UserError
from text2grad.folders import MANIFEST, check_replaceable, find_damage
from text2grad.models.loading import load_model, load_tokenizer

DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}


def _untie(model: Any) -> None:
    """Untie input and output embeddings where the adapter changes only one of them."""
    embeddings = [model.get_input_embeddings(), model.get_output_embeddings()]
    adapted = [isinstance(layer, BaseTunerLayer) for layer in embeddings]
    if model.config.tie_word_embeddings and any(adapted):
        layer = embeddings[1].get_base_layer() if adapted[1] else embeddings[1]
        layer.weight = nn.Parameter(layer.weight.detach().clone())
        model.config.tie_word_embeddings = False


def export(run: Path, output: Path, dtype: str = "bfloat16") -> None:
    """Write the model that a run trained to `output`: safetensors weights, tokenizer, and the run's model card.

    The adapter is merged in float32 and rounded once. An earlier export in `output` is replaced; anything else there is
    refused.
    """
    folder = RunFolder(run)
    if not (folder.final / "config.json").is_file() and not (folder.final / "adapter_config.json").is_file():
        raise UserError(f"{run}: no trained model; a finished run has one in {folder.final}")
    _check_output(folder, output.resolve())
    if (folder.final / MANIFEST).exists() and (damage := find_damage(folder.final, "model")):
        raise UserError(f"{damage}; `text2grad run --resume` writes it anew")
    if dtype not in DTYPES:
        raise UserError(f'dtype "{dtype}" is not one of {", ".join(DTYPES)}')
    model: Any
    if (folder.final / "adapter_config.json").is_file():
        base = load_model(_base_model(folder))
        adapted = PeftModel.from_pretrained(base, folder.final, use_safetensors=True)
        _untie(adapted.get_base_model())
        model = adapted.merge_and_unload()
    else:
        model = load_model(folder.final)
    tokenizer = load_tokenizer(folder.final)
    path = folder.final / CARD
    card = merged_card(path.read_text(encoding="utf-8"), path) if path.is_file() else None
    write_weights(output, model.to(DTYPES[dtype]), tokenizer, card, kind="export")


def _base_model(run: RunFolder) -> str:
    """Return the base of the adapter: as the run's config names it, or as the adapter does for runs without one."""
    if run.config.is_file():
        try:
            return str(yaml.safe_load(run.config.read_text(encoding="utf-8"))["model"]["name"])
        except (yaml.YAMLError, UnicodeDecodeError, KeyError, TypeError) as error:
            raise UserError(f"{run.config} is damaged: it has no model.name; restore it from a copy") from error
    return str(json.loads((run.final / "adapter_config.json").read_text(encoding="utf-8"))["base_model_name_or_path"])


def _check_output(run: RunFolder, output: Path) -> None:
    root, checkpoints = run.root.resolve(), run.checkpoint.parent.resolve()
    if output.is_relative_to(root) or checkpoints.is_relative_to(output):
        raise UserError(f"{output} would overwrite the run in {run.root}; choose a folder outside of it")
    check_replaceable(output, "export")
