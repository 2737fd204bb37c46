"""The reward model that two arms of `evidence.py` learn from: trained on what the qa critic says of other answers."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from evidence_start import start_of
from evidence_tasks import TASKS
from untrained_answers import untrained_answers

from text2grad.critics.base import collect_feedback
from text2grad.reward_model import train as training
from text2grad.reward_model.model import SpanRewardModel
from text2grad.schema import Example, Feedback

TASK, FOLDER = "questions", "reward-model"
ANSWERS_PER_PROMPT, EPOCHS = 2, 3.0


def train_reward_model(starts: Path, device: str, quick: bool) -> None:
    """Train on answers of the untrained model to the training prompts, with the task's critic's comments on them."""
    task, folder = TASKS[TASK], starts / FOLDER
    if (folder / "training.json").is_file():
        return
    prompts = task.train()[: 8 if quick else None]
    answers = untrained_answers(prompts, task.settings["max_completion_length"], ANSWERS_PER_PROMPT, device)
    feedback = collect_feedback(task.critic(), answers)
    examples = [answer.model_copy(update={"feedback": item}) for answer, item in zip(answers, feedback, strict=True)]
    settings = training.RewardTrainingSettings(
        model=start_of(task, starts, quick),
        num_train_epochs=EPOCHS,
        max_steps=2 if quick else -1,
    )
    training.train_reward_model(examples, settings, folder)


class OneAtATime:
    """A critic that several threads may ask."""

    def __init__(self, critic: SpanRewardModel) -> None:
        self._critic, self._lock = critic, threading.Lock()

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        with self._lock:
            return self._critic.critique(examples)


@cache
def reward_critic(starts: Path, device: str) -> OneAtATime:
    """Return the reward model that `train_reward_model` wrote."""
    return OneAtATime(SpanRewardModel.from_pretrained(starts / FOLDER, device=device))
