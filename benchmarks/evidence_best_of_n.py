"""Best of n: the untrained model answers n times and the critic chooses. It asks the critic when others may not."""

from __future__ import annotations

from collections.abc import Sequence

from evidence_answers import sample_answers, to_examples

from text2grad import Text2GradTrainer
from text2grad.critics.base import Critic, collect_feedback
from text2grad.evaluation.metrics import critic_score
from text2grad.schema import Example

NUM_ANSWERS = 4


def best_of_n(trainer: Text2GradTrainer, critic: Critic, examples: Sequence[Example]) -> list[list[int]]:
    """Return the answer with the best score to each prompt; the first of equals."""
    answers = sample_answers(trainer, examples, NUM_ANSWERS)
    repeated = [example for example in examples for _ in range(NUM_ANSWERS)]
    feedback = collect_feedback(critic, to_examples(trainer, repeated, answers))
    scores = [critic_score(item) if item.status == "ok" else float("-inf") for item in feedback]
    best = [max(range(i, i + NUM_ANSWERS), key=scores.__getitem__) for i in range(0, len(answers), NUM_ANSWERS)]
    return [answers[i] for i in best]
