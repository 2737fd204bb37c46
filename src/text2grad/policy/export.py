"""A trained adapter merged into its base: a plain model that loads with transformers alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
import yaml
from peft import PeftModel

from text2grad.errors import UserError
from text2grad.files import replace_folder, replace_text
from text2grad.models import load_model, load_tokenizer
from text2grad.runs import RunFolder

DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}


def export(run: Path, output: Path, dtype: str = "bfloat16") -> None:
    """Write the model that a run trained to `output`: safetensors weights, tokenizer, and a model card.

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
        model = PeftModel.from_pretrained(base, folder.final, use_safetensors=True).merge_and_unload()
    else:
        model = load_model(folder.final)
    tokenizer = load_tokenizer(config["model"]["name"])

    def fill(place: Path) -> None:
        model.to(DTYPES[dtype]).save_pretrained(place)
        tokenizer.save_pretrained(place)
        replace_text(place / "README.md", model_card(config, _evaluation(folder)))

    replace_folder(output, fill)


def model_card(config: dict[str, Any], evaluation: dict[str, Any] | None) -> str:
    """Markdown with the metadata that the Hugging Face hub reads, and the run's held-out figures."""
    figures = ""
    if evaluation is not None:
        rows = "\n".join(f"| {name} | {_change(figure)} |" for name, figure in evaluation["figures"].items())
        figures = f"""
## Held-out answers, n = {evaluation["n"]}

| figure | before | after | 95% interval of the difference |
|---|---|---|---|
{rows}
"""
    settings = yaml.safe_dump(config, sort_keys=False, allow_unicode=True)
    return f"""---
base_model: {config["model"]["name"]}
library_name: transformers
pipeline_tag: text-generation
tags: [text2grad]
---

# {config["model"]["name"]}, taught from written feedback

Trained with text2grad: the critic `{config["critic"]["name"]}` commented on the model's own answers, and its comments
became rewards of the tokens that they are about. The adapter is merged: this is a plain model for transformers.
{figures}
## Settings

```yaml
{settings}```
"""


def _change(figure: dict[str, float]) -> str:
    interval = f"[{figure['low']:+.3f}, {figure['high']:+.3f}]"
    return f"{figure['before']:.3f} | {figure['after']:.3f} | {interval}"


def _evaluation(folder: RunFolder) -> dict[str, Any] | None:
    if not folder.evaluation.is_file():
        return None
    evaluation: dict[str, Any] = json.loads(folder.evaluation.read_text(encoding="utf-8"))
    return evaluation
