"""The arms of `evidence.py`: same prompts, critiques, samples and steps; only what becomes of the critique differs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from evidence_best_of_n import best_of_n
from evidence_dpo import dpo_step
from evidence_ilf import ilf_step
from evidence_plan import FURTHER_ARMS, MAIN_ARMS
from evidence_reflection import reflect
from evidence_trl import learn_with_grpo, learn_with_sdpo
from one_fault import Score

from text2grad import Text2GradTrainer
from text2grad.critics.base import Critic
from text2grad.rewards.credit import Credit
from text2grad.schema import Example

Metrics = dict[str, Any]
AfterStep = Callable[[int, Metrics], None]  # called with every finished step
Learn = Callable[[Text2GradTrainer, int, AfterStep], None]  # trainer, steps
Answer = Callable[[Text2GradTrainer, Critic, Sequence[Example]], list[list[int]]]  # ids of an answer to each prompt
NO_CORRECTIONS = {"corrections": {"weight": 0.0}}
SCALE = {"advantage_normalization": "scale"}  # the default: without scores, `whiten` would pay unmentioned words
PLAIN_MODEL = {"share_prompts": False, "gradient_checkpointing": False}  # as TRL expects it
SEQUENCE = {"credit": Credit(mode="sequence"), **NO_CORRECTIONS}


def steps_of(step_of: Callable[[Text2GradTrainer, int], Metrics]) -> Learn:
    """Return a loop over steps."""

    def learn(trainer: Text2GradTrainer, steps: int, after_step: AfterStep) -> None:
        for step in range(1, steps + 1):
            trainer.set_learning_rate(step)
            after_step(step, step_of(trainer, step))

    return learn


def learn_nothing(trainer: Text2GradTrainer, steps: int, after_step: AfterStep) -> None:
    """Leave the weights as they are."""


SPAN_STEPS = steps_of(lambda trainer, step: trainer.step(step)[0])


@dataclass(frozen=True)
class Arm:
    """settings: changes of the trainer's. partial: more of them where the critic names one fault per answer.

    score: the number that comes with such a comment (`OneFault`): arms that learn from comments get none.
    reward_model: whether a reward model (`evidence_reward.py`) comments on the answers instead of the task's critic.
    learn: trains. answer: how held-out prompts are answered where one sample of the policy is not the answer; it may
    ask the critic, which other arms may not at that time.
    """

    settings: Metrics = field(default_factory=dict)
    partial: Metrics = field(default_factory=dict)
    score: Score | None = None
    reward_model: bool = False
    learn: Learn = SPAN_STEPS
    answer: Answer | None = None


ARMS = {
    "scalar rloo": Arm({"estimator": "rloo", **SEQUENCE}, score="comment"),
    "scalar rloo, holistic": Arm({"estimator": "rloo", **SEQUENCE}, score="whole"),
    "scalar ppo": Arm({"estimator": "gae", **SEQUENCE}, score="comment"),
    "paper": Arm({"estimator": "gae", "credit": Credit(mode="uniform", total="spans"), **NO_CORRECTIONS}),
    "spans local": Arm({"estimator": "local", **NO_CORRECTIONS}, SCALE),
    "spans local, as a score": Arm({"estimator": "local", **NO_CORRECTIONS}, score="comment"),
    "spans local, light outcome": Arm({"estimator": "local", "outcome_weight": 0.25, **NO_CORRECTIONS}),
    "spans first": Arm({"estimator": "local", "credit": Credit(mode="first"), **NO_CORRECTIONS}, SCALE),
    "spans rloo_tokens": Arm({"estimator": "rloo_tokens", **NO_CORRECTIONS}, SCALE),
    "spans moved": Arm({"estimator": "rloo_tokens", "credit": Credit(mode="shuffled"), **NO_CORRECTIONS}, SCALE),
    "corrections local": Arm({"estimator": "local"}, SCALE),
    "corrections rloo_tokens": Arm({"estimator": "rloo_tokens"}, SCALE),
    "corrections rloo": Arm({"estimator": "rloo", "credit": Credit(mode="sequence")}, score="comment"),
    "ILF": Arm(learn=steps_of(ilf_step)),
    "DPO": Arm(NO_CORRECTIONS, learn=steps_of(dpo_step)),
    "best of n": Arm(learn=learn_nothing, answer=best_of_n),
    "reflection": Arm(learn=learn_nothing, answer=reflect),
    "reward model, spans": Arm({"estimator": "local", **NO_CORRECTIONS}, reward_model=True),
    "reward model, scalar": Arm({"estimator": "rloo", **SEQUENCE}, reward_model=True),
    "TRL GRPO": Arm(PLAIN_MODEL, learn=learn_with_grpo),
    "TRL SDPO": Arm(PLAIN_MODEL, learn=learn_with_sdpo),
}
assert set(ARMS) == {*MAIN_ARMS, *FURTHER_ARMS}
