"""The Hugging Face sampler."""

from __future__ import annotations

import pytest
import torch
from peft.tuners import lora
from support import MakeTrainer

from text2grad.rollout.rng import Stream
from text2grad.rollout.samplers import SamplingRequest
from text2grad.rollout.sampling import Sampled, noise

PROMPTS = [[10, 11, 12], [13]]


def test_completions_are_keyed_by_seed_step_and_sample(make_trainer: MakeTrainer) -> None:
    sampler = make_trainer().hf_sampler
    both = sampler.sample(PROMPTS, 2, SamplingRequest(3, 5, range(4), 1.2, 6))
    uniforms = noise(Stream.SAMPLING, 3, 5, range(4), 6)
    with sampler.session() as generate:
        assert both == generate(PROMPTS, uniforms, 1.2, num_generations=2)
    second = sampler.sample(PROMPTS[1:], 2, SamplingRequest(3, 5, [2, 3], 1.2, 6))
    assert second.completions == both.completions[2:]
    assert both.completions != sampler.sample(PROMPTS, 2, SamplingRequest(3, 6, range(4), 1.2, 6)).completions


@pytest.mark.parametrize("fast_decoding", [True, False])
def test_adapters_are_prepared_while_sampling(make_trainer: MakeTrainer, fast_decoding: bool) -> None:
    trainer = make_trainer(fast_decoding=fast_decoding)
    adapted = [module for module in trainer.policy.model.modules() if type(module) is lora.Linear]
    assert adapted
    with trainer.hf_sampler.session():
        assert all(("forward" in vars(module)) == fast_decoding for module in adapted)
    assert not any("forward" in vars(module) for module in adapted)


def test_the_reference_samples_as_the_model_did_before_training(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(lora=False)
    uniforms = noise(Stream.SAMPLING, 0, 0, range(2), 12)

    def completions(reference: bool = False) -> Sampled:
        with trainer.hf_sampler.session(reference) as generate:
            return generate(PROMPTS, uniforms, 1.0)

    before = completions()
    with torch.no_grad():
        for parameter in trainer.policy.trainable().values():
            parameter.mul_(2)
    assert completions() != before
    assert completions(reference=True) == before


def test_without_fast_decoding_the_same_completions_are_sampled(make_trainer: MakeTrainer) -> None:
    request = SamplingRequest(3, 5, range(4), 1.2, 6)
    fast, plain = (
        make_trainer(str(on), fast_decoding=on).hf_sampler.sample(PROMPTS, 2, request) for on in (True, False)
    )
    assert fast.completions == plain.completions
    assert fast.logprobs is not None
    assert plain.logprobs is not None
    for one, other in zip(fast.logprobs, plain.logprobs, strict=True):
        assert one == pytest.approx(other, abs=1e-5)
