"""Direct preference optimisation on the step's own samples: the critic's best answer to a prompt against its worst."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn.functional import logsigmoid

from text2grad import Text2GradTrainer
from text2grad.critics.base import collect_feedback
from text2grad.evaluation.metrics import critic_score
from text2grad.schema import Feedback

BETA = 0.1
EVERYTHING = 1 << 30  # tokens of a micro-batch: all pairs in one


def dpo_step(trainer: Text2GradTrainer, step: int) -> dict[str, Any]:
    """One optimiser step on -log sigmoid(BETA * (policy margin - reference margin)), averaged over the pairs."""
    rollout = trainer.rollout(step)
    pairs = rank(collect_feedback(trainer.critic, rollout.examples), trainer.args.num_generations)
    if not pairs:
        return {"pairs": 0}
    learner, args = trainer.learner, trainer.args
    reference = trainer.score(rollout, reference=True).logprobs.sum(1)
    trainer.policy.train()
    learner.optimizer.zero_grad()
    chosen = [sample for pair in pairs for sample in pair]
    ((samples, rows),) = learner.micro_batches(rollout.prompts, rollout.completions, chosen, EVERYTHING)
    logprobs = learner.policy(rows, args.temperature).logprobs.sum(1)
    gains = dict(zip(samples, logprobs - reference[samples].to(logprobs.device), strict=True))
    margins = torch.stack([gains[best] - gains[worst] for best, worst in pairs])
    learner.backward(-logsigmoid(BETA * margins).mean())
    learner.clip_gradients(args.max_grad_norm)
    learner.optimizer.step()
    learner.optimizer.zero_grad()
    return {"pairs": len(pairs)}


def rank(feedback: Sequence[Feedback], num_generations: int) -> list[tuple[int, int]]:
    """Return (best, worst) of each group whose scores differ; failed feedback takes no part."""
    pairs = []
    for start in range(0, len(feedback), num_generations):
        scores = {
            i: critic_score(feedback[i]) for i in range(start, start + num_generations) if feedback[i].status == "ok"
        }
        if len(set(scores.values())) > 1:
            pairs.append((max(scores, key=scores.__getitem__), min(scores, key=scores.__getitem__)))
    return pairs
