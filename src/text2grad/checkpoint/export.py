"""Export of a run: its adapter merged into the base, as a plain model that transformers loads."""

from __future__ import annotations

from pathlib import Path

import torch

from text2grad.checkpoint.model_card import CARD, merged_card
from text2grad.checkpoint.run_folder import RunFolder
from text2grad.checkpoint.trained import find_model, is_run, load_merged
from text2grad.checkpoint.weights import write_weights
from text2grad.errors import UserError
from text2grad.folders import check_replaceable
from text2grad.models.loading import load_tokenizer

DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}


def export(run: Path, output: Path, dtype: str = "bfloat16") -> None:
    """Write the model that a run trained to `output`: safetensors weights, tokenizer, and the run's model card.

    The adapter is merged in float32 and rounded once. An earlier export in `output` is replaced; anything else there is
    refused.
    """
    folder = RunFolder(run)
    if not is_run(folder):
        raise UserError(f"{run}: no trained model; a finished run has one in {folder.final}")
    source = find_model(run)
    _check_output(folder, output.resolve())
    if dtype not in DTYPES:
        raise UserError(f'dtype "{dtype}" is not one of {", ".join(DTYPES)}')
    model = load_merged(source)
    tokenizer = load_tokenizer(folder.final)
    path = folder.final / CARD
    card = merged_card(path.read_text(encoding="utf-8"), path) if path.is_file() else None
    write_weights(output, model.to(DTYPES[dtype]), tokenizer, card, kind="export")


def _check_output(run: RunFolder, output: Path) -> None:
    root, checkpoints = run.root.resolve(), run.checkpoint.parent.resolve()
    if output.is_relative_to(root) or checkpoints.is_relative_to(output):
        raise UserError(f"{output} would overwrite the run in {run.root}; choose a folder outside of it")
    check_replaceable(output, "export")
