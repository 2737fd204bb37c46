"""Sampled ids of verl to token rewards, in the workers that sample or reward.

verl carries one number per token and no more. The outcome of a whole completion, which `token_rewards` keeps apart,
therefore rides on the last token, and the estimators of `advantages.py` take it off again. With it the rewards of a
completion add up to its score, which is what verl logs.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from pydantic import Field
from transformers import PreTrainedTokenizerBase

from text2grad.config.run import CriticSettings
from text2grad.critics.base import Critic
from text2grad.critics.registry import make_critic
from text2grad.errors import UserError
from text2grad.integrations.critique_rewards import critique_to_rewards
from text2grad.rewards.credit import Credit, TokenRewards
from text2grad.schema import Example, Feedback
from text2grad.settings import Settings
from text2grad.trainer.advantages import Normalization

SECTION = "algorithm.text2grad"


class VerlSettings(Settings):
    """The section `algorithm.text2grad` of verl's configuration, the one that estimators see too."""

    critic: CriticSettings = CriticSettings()
    credit: Credit = Credit()
    gamma: float | None = Field(None, ge=0, le=1, description="discount; null: the estimator's default")
    lam: float | None = Field(None, ge=0, le=1, description="trace decay; null: the estimator's default")
    advantage_normalization: Normalization = "scale"

    @classmethod
    def from_algorithm(cls, algorithm: Any) -> VerlSettings:
        """Read the section from verl's `config.algorithm`, a DictConfig or a dictionary."""
        section = (algorithm or {}).get("text2grad") or {}
        if not isinstance(section, dict):
            from omegaconf import OmegaConf

            section = OmegaConf.to_container(section, resolve=True)
        return cls.parse(section, where=SECTION)


class ScoredCompletion(NamedTuple):
    """What a completion earned. rewards: one per sampled id; they add up to its score where it has one.

    valid: False where the critique failed; its rewards are NaN. extra_info: for verl's logs, the same keys always.
    """

    rewards: list[float]
    valid: bool
    extra_info: dict[str, Any]


class SpanScorer:
    """A critic, and how its feedback becomes rewards. max_length: ids of a completion; a longer one was truncated."""

    def __init__(self, critic: Critic, credit: Credit, tokenizer: PreTrainedTokenizerBase, max_length: int) -> None:
        self._critic, self._credit, self._tokenizer = critic, credit, tokenizer
        self._max_length = max_length

    async def score(self, example: Example, ids: Sequence[int]) -> ScoredCompletion:
        """Return what the completion earned. example: of the prompt; its completion is decoded from the ids."""
        truncated = len(ids) >= self._max_length and ids[-1] != self._tokenizer.eos_token_id
        scored = await asyncio.to_thread(
            critique_to_rewards,
            self._critic,
            [example],
            [ids],
            self._tokenizer,
            truncated=[truncated],
            credit=self._credit,
        )
        (earned,), (feedback,) = scored.tokens, scored.feedback
        return ScoredCompletion(to_verl(earned, feedback, self._credit), earned.valid, extra_info(earned, feedback))


def make_scorer(config: Any, tokenizer: PreTrainedTokenizerBase, critic_url: str | None = None) -> SpanScorer:
    """Return the scorer of verl's whole configuration. critic_url: an endpoint for the llm critic, if verl serves one.

    A process has one critic, however many agent loops it runs.
    """
    settings = VerlSettings.from_algorithm(config.algorithm)
    options = dict(settings.critic.options)
    if critic_url is not None and settings.critic.name == "llm":
        options.setdefault("base_url", critic_url)
    critic = _critic(settings.critic.name, json.dumps(options, sort_keys=True))
    return SpanScorer(critic, settings.credit, tokenizer, config.actor_rollout_ref.rollout.response_length)


@cache
def _critic(name: str, options: str) -> Critic:
    return make_critic(name, json.loads(options))


def to_verl(earned: TokenRewards, feedback: Feedback, credit: Credit) -> list[float]:
    """Return one reward per token, the outcome on the last; NaN where the critique failed."""
    if not earned.valid:
        return [math.nan] * len(earned.rewards)
    rewards = [float(reward) for reward in earned.rewards]
    if credit.total == "score":
        if earned.outcome is None:
            raise UserError(
                f"critic {feedback.critic} gives no score, but {SECTION}.credit.total is score: set it to spans"
            )
        rewards[-1] += earned.outcome
    return rewards


def extra_info(earned: TokenRewards, feedback: Feedback) -> dict[str, Any]:
    """Return what verl logs besides the rewards."""
    return {
        "critique_failed": float(not earned.valid),
        "good_spans": float(sum(span.label == "good" for span in feedback.spans)),
        "poor_spans": float(sum(span.label == "poor" for span in feedback.spans)),
        "omissions": float(len(feedback.omissions)),
    }
