"""The models that the arms of `evidence.py` start from."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from evidence_tasks import Task
from small_model import small_model
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.utils.rnn import pad_sequence

from text2grad.models.loading import DEFAULT_MODEL, load_model, load_tokenizer
from text2grad.models.prompts import encode_prompts

BATCH, RATE, LONGEST = 32, 1e-4, 512
FINGERPRINT = "fingerprint.txt"


def start_of(task: Task, folder: Path, quick: bool = False) -> str:
    """Return the starting model of a task: the default model, or the one that `warm_up` wrote.

    quick: a random model of two layers instead.
    """
    if quick:
        tiny = folder / "tiny"
        return str(tiny) if (tiny / "config.json").is_file() else small_model(tiny)
    return str(folder / task.name) if task.warm_up else DEFAULT_MODEL


def warm_up(task: Task, folder: Path, device: str, steps: int, batch_size: int = BATCH) -> None:
    """Write the model that all arms of a task start from: a few supervised steps on the answers of `task.warm_up`.

    The steps are deterministic: on the same kind of machine, another time, they give the same model.
    """
    assert task.warm_up is not None
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    torch.use_deterministic_algorithms(True)
    tokenizer, examples = load_tokenizer(DEFAULT_MODEL), task.warm_up()
    model: Any = load_model(DEFAULT_MODEL, torch.float32).to(device)
    prompts = encode_prompts(examples, tokenizer, False, model.config.max_position_embeddings, LONGEST)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    for step in range(steps):
        rows = [(step * batch_size + i) % len(examples) for i in range(batch_size)]
        answers = [
            [*tokenizer(examples[i].completion, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]
            for i in rows
        ]
        ids = [prompts[i] + answer for i, answer in zip(rows, answers, strict=True)]
        labels = [[-100] * len(prompts[i]) + answer for i, answer in zip(rows, answers, strict=True)]
        batch = {
            "input_ids": _pad(ids, tokenizer.pad_token_id),
            "labels": _pad(labels, -100),
            "attention_mask": _pad([[1] * len(row) for row in ids], 0),
        }
        with sdpa_kernel(SDPBackend.MATH):  # the faster ones are not deterministic
            model(**{key: value.to(device) for key, value in batch.items()}).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.save_pretrained(folder / task.name)
    tokenizer.save_pretrained(folder / task.name)
    (folder / task.name / FINGERPRINT).write_text(fingerprint(model), encoding="utf-8")


def fingerprint(model: Any) -> str:
    """Return a hash of all weights."""
    found = hashlib.blake2b(digest_size=6)
    for name, weight in sorted(model.state_dict().items()):
        found.update(name.encode() + weight.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


def start_fingerprint(start: str) -> str:
    """Return the fingerprint of a starting model that `warm_up` wrote; of others their name."""
    path = Path(start, FINGERPRINT)
    return path.read_text(encoding="utf-8") if path.is_file() else Path(start).name


def _pad(rows: Sequence[Sequence[int]], value: int) -> torch.Tensor:
    return pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=value)
