"""Samplers of a step's completions: the policy itself here, vLLM in vllm/."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import torch

from text2grad.distributed.processes import Processes
from text2grad.distributed.sharding import FullPolicy
from text2grad.models.policy import compute_dtype
from text2grad.rollout.fast.modules import prepared_lora
from text2grad.rollout.rng import Stream
from text2grad.rollout.sampling import Sampled, noise, sample


@dataclass(frozen=True)
class SamplingRequest:
    """Parameters of a rollout. Randomness is keyed by (seed, step, sample), whichever sampler is used.

    samples: index of each completion within the step; completions of one prompt are neighbours.
    """

    seed: int
    step: int
    samples: Sequence[int]
    temperature: float
    max_tokens: int


class Sampler(Protocol):
    """Samples from the policy with its current weights."""

    def sample(self, prompts: Sequence[Sequence[int]], num_generations: int, request: SamplingRequest) -> Sampled:
        """Return `num_generations` completions per prompt, as the sampled ids; nothing is re-encoded."""
        ...


@dataclass(frozen=True)
class HFSampler:
    """Samples from the policy's own Hugging Face model."""

    full_policy: FullPolicy
    bf16: bool
    end_ids: Sequence[int]
    pad_id: int
    fast_decoding: bool

    def sample(self, prompts: Sequence[Sequence[int]], num_generations: int, request: SamplingRequest) -> Sampled:
        uniforms = noise(Stream.SAMPLING, request.seed, request.step, request.samples, request.max_tokens)
        with self.session() as generate:
            return generate(prompts, uniforms, request.temperature, num_generations=num_generations)

    @contextmanager
    def session(self, reference: bool = False) -> Iterator[Callable[..., Sampled]]:
        """Yield `generate(prompts, uniforms, temperature, num_generations=1)`, see `rollout.sampling.sample`.

        A collective call; sharded weights stay gathered. reference: sample from the initial policy.
        """
        with (
            self.full_policy.summon(reference) as policy,
            policy.scorer(reference) as model,
            torch.autocast(model.device.type, torch.bfloat16, enabled=self.bf16),
            prepared_lora(model, compute_dtype(model)) if self.fast_decoding else nullcontext(),
        ):
            yield partial(
                sample,
                model.eval(),
                end_ids=self.end_ids,
                pad_id=self.pad_id,
                fast_decoding=self.fast_decoding,
                return_logprobs=True,
            )


def gather_samples(sampled: Sampled, processes: Processes) -> Sampled:
    """Return the samples of all processes, in rank order."""
    logprobs = None if sampled.logprobs is None else processes.gather(sampled.logprobs)
    return Sampled(processes.gather(sampled.completions), logprobs)
