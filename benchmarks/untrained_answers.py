"""Answers of the untrained default model, sampled once and kept in the cache folder: honest attempts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import torch

from text2grad.align.tokens import decode
from text2grad.models.loading import DEFAULT_MODEL, cache_folder, end_ids, load_model, load_tokenizer
from text2grad.models.prompts import encode_prompts
from text2grad.rollout.rng import Stream
from text2grad.rollout.sampling import noise, sample
from text2grad.schema import Example, read_examples, write_examples

TEMPERATURE = 0.7
BATCH_SIZE = 8


def untrained_answers(
    examples: Sequence[Example], max_tokens: int, samples: int = 1, device: str = "cpu"
) -> list[Example]:
    """Return `samples` answers per example as completions, neighbours for one prompt.

    Randomness is keyed by the position, so that an answer does not depend on the batches.
    """
    key = json.dumps([max_tokens, samples, TEMPERATURE, [(e.id, e.prompt_text) for e in examples]])
    path = cache_folder() / "untrained_answers" / f"{hashlib.blake2b(key.encode(), digest_size=8).hexdigest()}.jsonl"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        completions = _sample(examples, max_tokens, samples, device)
        repeated = [example for example in examples for _ in range(samples)]
        write_examples(
            path, [e.model_copy(update={"completion": text}) for e, text in zip(repeated, completions, strict=True)]
        )
    return list(read_examples(path))


def _sample(examples: Sequence[Example], max_tokens: int, samples: int, device: str) -> list[str]:
    tokenizer = load_tokenizer(DEFAULT_MODEL)
    model: Any = load_model(DEFAULT_MODEL, torch.float32).eval()
    model.to(device)
    ends = end_ids(model, tokenizer)
    prompts = encode_prompts(examples, tokenizer, False, model.config.max_position_embeddings, max_tokens)
    texts: list[str] = []
    for start in range(0, len(prompts), BATCH_SIZE):
        batch = prompts[start : start + BATCH_SIZE]
        rows = range(start * samples, (start + len(batch)) * samples)
        uniforms = noise(Stream.EVALUATION, 0, 0, rows, max_tokens)
        drawn = sample(model, batch, uniforms, TEMPERATURE, ends, tokenizer.pad_token_id, num_generations=samples)
        texts += [decode(ids, tokenizer) for ids in drawn.completions]
    return texts
