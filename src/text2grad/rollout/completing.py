"""Completions of many prompts, batch by batch, outside of training steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from text2grad.models.loading import end_ids
from text2grad.rollout.rng import Stream
from text2grad.rollout.sampling import Sampled, noise, sample

Generate = Callable[..., Sampled]
OnProgress = Callable[[int, int], object]
BATCH_SIZE = 24


def ignore_progress(done: int, total: int) -> None:
    """Show nothing."""


def complete_prompts(
    generate: Generate,
    prompts: Sequence[Sequence[int]],
    temperature: float,
    max_tokens: int,
    seed: int,
    num_generations: int = 1,
    first: int = 0,
    batch_size: int = BATCH_SIZE,
    on_progress: OnProgress = ignore_progress,
) -> list[list[int]]:
    """Return the ids of `num_generations` completions per prompt; those of one prompt are neighbours.

    generate: as `HFSampler.session` yields and `plain_session` returns it. The random numbers depend on the seed and on
    the position of a completion, whatever the batches: two models answer with the same ones. first: position of the
    first prompt, where others come before it in another process. batch_size: completions that are sampled at once.
    on_progress: called with the numbers of finished and all prompts.
    """
    completions: list[list[int]] = []
    size = max(1, batch_size // num_generations)
    for start in range(0, len(prompts), size):
        batch = prompts[start : start + size]
        positions = range((first + start) * num_generations, (first + start + len(batch)) * num_generations)
        uniforms = noise(Stream.EVALUATION, seed, 0, positions, max_tokens)
        completions += generate(batch, uniforms, temperature, num_generations=num_generations).completions
        on_progress(start + len(batch), len(prompts))
    return completions


def plain_session(model: Any, tokenizer: Any) -> Generate:
    """Return `generate(prompts, uniforms, temperature, num_generations)` of a model that is not being trained."""
    ends = end_ids(model, tokenizer)
    return partial(sample, model.eval(), end_ids=ends, pad_id=tokenizer.pad_token_id)
