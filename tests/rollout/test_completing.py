"""Completions of many prompts do not depend on how they are batched."""

from __future__ import annotations

from pathlib import Path

import pytest

from text2grad.models.loading import load_model, load_tokenizer
from text2grad.rollout.completing import complete_prompts, plain_session

PROMPTS = [[10, 11, 12], [13], [14, 15], [16, 17, 18, 19], [20]]


@pytest.mark.parametrize("num_generations", [1, 2])
def test_batches_and_shares_give_the_same_completions(tiny_model: Path, num_generations: int) -> None:
    generate = plain_session(load_model(tiny_model), load_tokenizer(tiny_model))
    options = {"temperature": 1.0, "max_tokens": 6, "seed": 3, "num_generations": num_generations}
    seen: list[tuple[int, int]] = []
    whole = complete_prompts(generate, PROMPTS, **options, on_progress=lambda *done: seen.append(done))
    assert len(whole) == 5 * num_generations
    assert seen == [(5, 5)]
    assert complete_prompts(generate, PROMPTS, **options, batch_size=2 * num_generations) == whole
    rest = complete_prompts(generate, PROMPTS[3:], **options, first=3)
    assert rest == whole[3 * num_generations :]
    assert len({tuple(completion) for completion in whole}) > num_generations


def test_temperature_zero_is_greedy(tiny_model: Path) -> None:
    generate = plain_session(load_model(tiny_model), load_tokenizer(tiny_model))
    one, other = (complete_prompts(generate, PROMPTS, 0.0, 6, seed) for seed in (0, 1))
    assert one == other
