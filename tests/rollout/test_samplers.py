"""Sampling in process, by key."""

from __future__ import annotations

import torch
from peft.tuners import lora
from support import MakeTrainer

from text2grad.rollout.rng import Stream
from text2grad.rollout.samplers import SamplingRequest
from text2grad.rollout.sampling import Sampled, noise

PROMPTS = [[10, 11, 12], [13]]


def test_draws_are_keyed_by_seed_step_and_sample(make_trainer: MakeTrainer) -> None:
    sampler = make_trainer().hf_sampler
    both = sampler.sample(PROMPTS, 2, SamplingRequest(3, 5, range(4), 1.2, 6))
    uniforms = noise(Stream.SAMPLING, 3, 5, range(4), 6)
    with sampler.drawing() as draw:
        assert both == draw(PROMPTS, uniforms, 1.2, num_generations=2)
    second = sampler.sample(PROMPTS[1:], 2, SamplingRequest(3, 5, [2, 3], 1.2, 6))
    assert second.completions == both.completions[2:]
    assert both.completions != sampler.sample(PROMPTS, 2, SamplingRequest(3, 6, range(4), 1.2, 6)).completions


def test_adapters_are_made_ready_while_tokens_are_drawn(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer()
    adapted = [module for module in trainer.policy.model.modules() if type(module) is lora.Linear]
    assert adapted
    with trainer.hf_sampler.drawing():
        assert all("forward" in vars(module) for module in adapted)
    assert not any("forward" in vars(module) for module in adapted)


def test_the_reference_answers_as_the_model_did_before_training(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(lora=False)
    uniforms = noise(Stream.SAMPLING, 0, 0, range(2), 12)

    def drawn(reference: bool = False) -> Sampled:
        with trainer.hf_sampler.drawing(reference) as draw:
            return draw(PROMPTS, uniforms, 1.0)

    before = drawn()
    with torch.no_grad():
        for parameter in trainer.policy.trainable().values():
            parameter.mul_(2)
    assert drawn() != before
    assert drawn(reference=True) == before
