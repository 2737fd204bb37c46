"""Who samples the answers of a step: the policy itself, or an engine that was given its weights (vllm_sampler.py)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from text2grad.distributed.processes import Processes
from text2grad.distributed.sharding import FullWeights
from text2grad.models.policy import Policy, compute_dtype
from text2grad.rollout.fast.lora import ready_adapters
from text2grad.rollout.rng import Stream
from text2grad.rollout.sampling import Sampled, noise, sample


@dataclass(frozen=True)
class SamplingRequest:
    """Which answers to draw, and how. Their randomness is keyed by (seed, step, sample), whoever draws them.

    samples: the number of each answer among all of the step's; answers to one prompt are neighbours.
    """

    seed: int
    step: int
    samples: Sequence[int]
    temperature: float
    max_tokens: int


class Sampler(Protocol):
    """SamplingRequest from the policy as it is at the moment of the call."""

    def sample(self, prompts: Sequence[Sequence[int]], num_generations: int, draws: SamplingRequest) -> Sampled:
        """`num_generations` answers to each prompt, as ids; nothing is ever encoded again."""
        ...


class Draw(Protocol):
    """SamplingRequest the answers that given uniform numbers decide, see `lm.sampling.sample`."""

    def __call__(
        self, prompts: Sequence[Sequence[int]], uniforms: Tensor, temperature: float, num_generations: int = 1
    ) -> Sampled: ...


class HFSampler:
    """The policy itself, with the weights that are trained."""

    def __init__(
        self, policy: Policy, full_weights: FullWeights, bf16: bool, end_ids: Sequence[int], pad_id: int
    ) -> None:
        self._policy = policy
        self._full_weights = full_weights
        self._bf16 = bf16
        self._end_ids = end_ids
        self._pad_id = pad_id

    def sample(self, prompts: Sequence[Sequence[int]], num_generations: int, draws: SamplingRequest) -> Sampled:
        uniforms = noise(Stream.SAMPLING, draws.seed, draws.step, draws.samples, draws.max_tokens)
        with self.drawing() as draw:
            return draw(prompts, uniforms, draws.temperature, num_generations)

    @contextmanager
    def drawing(self, reference: bool = False) -> Iterator[Draw]:
        """Stands ready to draw, as often as is liked; every process must take part. reference: as before training.

        Weights that the processes divide among them are whole for as long.
        """

        def draw(
            prompts: Sequence[Sequence[int]], uniforms: Tensor, temperature: float, num_generations: int = 1
        ) -> Sampled:
            return sample(
                model.eval(), prompts, uniforms, temperature, self._end_ids, self._pad_id, num_generations, scored=True
            )

        with (
            self._full_weights.filled(self._policy, reference) as policy,
            policy.scorer(reference) as model,
            # Not the accelerator's own autocast, which does nothing under DeepSpeed.
            torch.autocast(model.device.type, torch.bfloat16, enabled=self._bf16),
            ready_adapters(model, compute_dtype(model)),
        ):
            yield draw


def gather_samples(sampled: Sampled, processes: Processes) -> Sampled:
    """What all processes sampled, in their order."""
    logprobs = None if sampled.logprobs is None else processes.gather(sampled.logprobs)
    return Sampled(processes.gather(sampled.completions), logprobs)
