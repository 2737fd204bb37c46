"""Who samples the answers of a step: the policy itself, or an engine that was given its weights (vllm_sampler.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from accelerate import Accelerator
from torch import Tensor, nn

from text2grad.policy.model import Policy
from text2grad.policy.rollout import Sampled, noise, sample_scored
from text2grad.policy.streams import Stream


@dataclass(frozen=True)
class Draws:
    """Which answers to draw, and how. Their randomness is keyed by (seed, step, sample), whoever draws them.

    samples: the number of each answer among all of the step's; answers to one prompt are neighbours.
    """

    seed: int
    step: int
    samples: Sequence[int]
    temperature: float
    max_tokens: int


class Sampler(Protocol):
    """Draws from the policy as it is at the moment of the call."""

    def sample(self, prompts: Sequence[Sequence[int]], num_generations: int, draws: Draws) -> Sampled:
        """`num_generations` answers to each prompt, as ids; nothing is ever encoded again."""
        ...


class InProcess:
    """The policy itself, with the weights that are trained."""

    def __init__(self, policy: nn.Module, accelerator: Accelerator, end_ids: Sequence[int], pad_id: int) -> None:
        self._policy = policy
        self._accelerator = accelerator
        self._end_ids = end_ids
        self._pad_id = pad_id

    def sample(self, prompts: Sequence[Sequence[int]], num_generations: int, draws: Draws) -> Sampled:
        uniforms = noise(Stream.SAMPLING, draws.seed, draws.step, draws.samples, draws.max_tokens)
        return self.draw(prompts, uniforms, draws.temperature, num_generations)

    def draw(
        self,
        prompts: Sequence[Sequence[int]],
        uniforms: Tensor,
        temperature: float,
        num_generations: int = 1,
        reference: bool = False,
    ) -> Sampled:
        """Answers that these uniform draws decide (see `rollout.sample`). reference: by the model before training."""
        policy: Policy = self._accelerator.unwrap_model(self._policy)
        with self._accelerator.autocast(), policy.scorer(reference) as model:
            return sample_scored(
                model.eval(), prompts, uniforms, temperature, self._end_ids, self._pad_id, num_generations
            )
