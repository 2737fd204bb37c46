"""A trained adapter merged into its base: a plain model that loads with transformers alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import yaml
from peft import PeftModel
from peft.tuners.tuners_utils import BaseTunerLayer
from torch import nn

from text2grad.checkpoint.model_card import CARD, merged_card
from text2grad.checkpoint.run_folder import RunFolder
from text2grad.errors import UserError
from text2grad.files import replace_folder, replace_text
from text2grad.models.loading import load_model, load_tokenizer

DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}


def _untie(model: Any) -> None:
    """Give input and output embeddings weights of their own where an adapter changes one of them alone."""
    ends = [model.get_input_embeddings(), model.get_output_embeddings()]
    adapted = [isinstance(layer, BaseTunerLayer) for layer in ends]
    if model.config.tie_word_embeddings and any(adapted):
        layer = ends[1].get_base_layer() if adapted[1] else ends[1]
        layer.weight = nn.Parameter(layer.weight.detach().clone())
        model.config.tie_word_embeddings = False


def export(run: Path, output: Path, dtype: str = "bfloat16") -> None:
    """Write the model that a run trained to `output`: safetensors weights, tokenizer, and the run's model card.

    The adapter is merged in float32 and rounded once. An existing folder is replaced whole or left as it was.
    """
    folder = RunFolder(run)
    if not (folder.final / "config.json").is_file() and not (folder.final / "adapter_config.json").is_file():
        raise UserError(f"{run}: no trained model; a run that has ended leaves one in {folder.final}")
    if dtype not in DTYPES:
        raise UserError(f'dtype "{dtype}" is not one of {", ".join(DTYPES)}')
    config = yaml.safe_load(folder.config.read_text(encoding="utf-8"))
    model: Any
    if (folder.final / "adapter_config.json").is_file():
        base = load_model(config["model"]["name"])
        adapted = PeftModel.from_pretrained(base, folder.final, use_safetensors=True)
        _untie(adapted.get_base_model())
        model = adapted.merge_and_unload()
    else:
        model = load_model(folder.final)
    tokenizer = load_tokenizer(config["model"]["name"])
    card = folder.final / CARD

    def fill(place: Path) -> None:
        model.to(DTYPES[dtype]).save_pretrained(place)
        tokenizer.save_pretrained(place)
        if card.is_file():
            replace_text(place / CARD, merged_card(card.read_text(encoding="utf-8"), card))

    replace_folder(output, fill)
