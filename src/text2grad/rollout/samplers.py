"""Samplers of a step's completions: the policy itself here, vLLM in vllm.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

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


class GenerateFn(Protocol):
    """Returns the completions that given uniform numbers determine, see `rollout.sampling.sample`."""

    def __call__(
        self, prompts: Sequence[Sequence[int]], uniforms: Tensor, temperature: float, num_generations: int = 1
    ) -> Sampled: ...


class HFSampler:
    """Samples from the policy's own Hugging Face model."""

    def __init__(
        self, full_policy: FullPolicy, bf16: bool, end_ids: Sequence[int], pad_id: int, fast_decoding: bool = True
    ) -> None:
        self._full_policy = full_policy
        self._bf16 = bf16
        self._end_ids = end_ids
        self._pad_id = pad_id
        self._fast_decoding = fast_decoding

    def sample(self, prompts: Sequence[Sequence[int]], num_generations: int, request: SamplingRequest) -> Sampled:
        uniforms = noise(Stream.SAMPLING, request.seed, request.step, request.samples, request.max_tokens)
        with self.session() as generate:
            return generate(prompts, uniforms, request.temperature, num_generations)

    @contextmanager
    def session(self, reference: bool = False) -> Iterator[GenerateFn]:
        """Yield a function that generates, any number of times. A collective call; sharded weights stay gathered.

        reference: sample from the initial policy.
        """

        def generate(
            prompts: Sequence[Sequence[int]], uniforms: Tensor, temperature: float, num_generations: int = 1
        ) -> Sampled:
            return sample(
                model.eval(),
                prompts,
                uniforms,
                temperature,
                self._end_ids,
                self._pad_id,
                num_generations,
                fast_decoding=self._fast_decoding,
                return_logprobs=True,
            )

        with (
            self._full_policy.summon(reference) as policy,
            policy.scorer(reference) as model,
            torch.autocast(model.device.type, torch.bfloat16, enabled=self._bf16),
            prepared_lora(model, compute_dtype(model)) if self._fast_decoding else nullcontext(),
        ):
            yield generate


def gather_samples(sampled: Sampled, processes: Processes) -> Sampled:
    """Return the samples of all processes, in rank order."""
    logprobs = None if sampled.logprobs is None else processes.gather(sampled.logprobs)
    return Sampled(processes.gather(sampled.completions), logprobs)
