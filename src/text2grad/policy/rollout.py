"""Sampling answers. Nothing stands between the model's distribution and the draw: what is sampled is what is scored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from transformers import Cache

from text2grad.policy.batching import pad_left
from text2grad.policy.cache import roomy_cache
from text2grad.policy.streams import Stream, stream

SHRINK_WHEN_FINISHED = 0.25  # share of finished rows at which they leave the batch


class Guide(Protocol):
    """Keeps completions within a form: what may not come next cannot be drawn."""

    def constrain(self, logits: Tensor, rows: Sequence[int]) -> Tensor:
        """(rows, vocabulary), -inf for what may not be the next token of these completions."""
        ...

    def advance(self, rows: Sequence[int], tokens: Sequence[int]) -> None:
        """These completions got these tokens."""
        ...


def noise(purpose: Stream, seed: int, step: int, samples: Sequence[int], length: int) -> Tensor:
    """Uniform draws in [0, 1), (samples, length), keyed by (seed, step, sample): the same in any batch."""
    return torch.from_numpy(np.stack([stream(purpose, seed, step, sample).random(length) for sample in samples]))


@torch.no_grad()
def sample(
    model: Any,
    prompts: Sequence[Sequence[int]],
    uniforms: Tensor,
    temperature: float,
    end_ids: Sequence[int],
    pad_id: int,
    num_generations: int = 1,
    guide: Guide | None = None,
) -> list[list[int]]:
    """Draw `num_generations` completions for each prompt; answers to one prompt are neighbours and share its cache.

    model: a causal language model; prompts: token ids.
    uniforms: (prompts * num_generations, longest completion), the draws that decide each token; see `noise`.
    temperature: logits are divided by it; 0 takes the most probable token.
    guide: for text that must have a form; the policy's own answers are never guided.
    Returns the sampled ids, the end token included where one was sampled.
    """
    device = model.device
    ids, mask = pad_left(prompts, pad_id, device)
    cache = roomy_cache(model.config)
    logits = _forward(model, ids, mask, cache)
    if num_generations > 1:
        cache.batch_repeat_interleave(num_generations)
        logits, mask = (tensor.repeat_interleave(num_generations, dim=0) for tensor in (logits, mask))

    uniforms = uniforms.to(device)
    ends = torch.tensor(list(end_ids), device=device)
    completions: list[list[int]] = [[] for _ in range(len(logits))]
    alive = torch.arange(len(logits), device=device)  # which completion each row of the batch is
    finished = torch.zeros(len(logits), dtype=torch.bool, device=device)
    for position in range(uniforms.shape[1]):
        running = [row for row, over in zip(alive.tolist(), finished.tolist(), strict=True) if not over]
        if guide is not None:
            logits[~finished] = guide.constrain(logits[~finished], running)
        chosen = draw(logits, uniforms[alive, position], temperature)
        tokens = chosen[~finished].tolist()
        for row, token in zip(running, tokens, strict=True):
            completions[row].append(token)
        if guide is not None:
            guide.advance(running, tokens)
        finished |= torch.isin(chosen, ends)
        if finished.all() or position + 1 == uniforms.shape[1]:
            break
        if finished.float().mean() >= SHRINK_WHEN_FINISHED:
            keep = (~finished).nonzero().squeeze(-1)
            cache.batch_select_indices(keep)
            alive, chosen, mask, finished = alive[keep], chosen[keep], mask[keep], finished[keep]
        mask = torch.cat([mask, mask.new_ones(len(mask), 1)], dim=1)
        logits = _forward(model, chosen.unsqueeze(1), mask, cache)
    return completions


def draw(logits: Tensor, uniforms: Tensor, temperature: float) -> Tensor:
    """The token at which the cumulative distribution passes the uniform draw.

    logits: (batch, vocabulary); uniforms: (batch,) in [0, 1). Returns (batch,) ids.
    """
    if temperature == 0:
        return logits.argmax(-1)
    probabilities = torch.softmax(logits.float() / temperature, dim=-1)
    cumulative = probabilities.double().cumsum(-1)  # float32 loses the tail of a large vocabulary
    total = cumulative[:, -1:]
    # Strictly below the total, so that a token without probability is never the first to pass it.
    target = torch.minimum(uniforms.unsqueeze(-1) * total, torch.nextafter(total, torch.zeros_like(total)))
    return torch.searchsorted(cumulative, target, right=True).squeeze(-1)


def _forward(model: Any, ids: Tensor, mask: Tensor, cache: Cache) -> Tensor:
    positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
    out = model(
        input_ids=ids,
        attention_mask=mask,
        position_ids=positions,
        past_key_values=cache,
        use_cache=True,
        logits_to_keep=1,
    )
    logits: Tensor = out.logits[:, -1]
    return logits
