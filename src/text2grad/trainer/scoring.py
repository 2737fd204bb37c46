"""What the policy and the critic say about a step's answers: each process asks about its share, and all hear all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import torch

from text2grad.critics.base import Critic, collect_feedback, critic_traits
from text2grad.distributed.learner import Learner
from text2grad.distributed.micro_batches import micro_batches
from text2grad.distributed.processes import catch_user_error, set_current_device
from text2grad.models.batching import stack_rows
from text2grad.models.policy import Policy, Scores
from text2grad.schema import Example, Feedback
from text2grad.trainer.batch import Rollout
from text2grad.trainer.config import PolicySettings

T = TypeVar("T")


@torch.no_grad()
def score(
    policy: Policy, learner: Learner, rollout: Rollout, rows: Sequence[int], args: PolicySettings, reference: bool
) -> Scores:
    """Log-probabilities, entropy and values of the sampled tokens of these rows, each (rows, tokens) on the CPU."""
    processes = learner.processes
    width = max(map(len, rollout.completions))
    scored: list[tuple[list[int], Scores]] = []
    policy.eval()
    for samples, padded in micro_batches(
        rollout.prompts,
        rollout.completions,
        rows,
        args.tokens_per_batch,
        policy.share_prompts,
        learner.accelerator.device,
        processes,
    ):
        scores = policy(padded, args.temperature, reference=reference)
        if samples:
            scored.append((samples, Scores(*(tensor.cpu() for tensor in scores))))
    learner.reshard()
    results = {
        i: Scores(*row)
        for samples, scores in processes.gather(scored)
        for i, row in zip(samples, zip(*scores, strict=True), strict=True)
    }
    return Scores(*(stack_rows([results[i][k] for i in rows], width) for k in range(3)))


def collect_feedback_beside(
    critic: Critic, examples: Sequence[Example], passes: Callable[[], T], learner: Learner
) -> tuple[list[Feedback], T]:
    """The critic's feedback on all answers, and what `passes` returns.

    The passes do not need the critic, so they run beside it: on a GPU, or where the critic waits on a network. On the
    CPU the two would only take the cores from each other.
    """
    accelerator, processes = learner.accelerator, learner.processes
    own = [examples[i] for i in processes.local_slice(len(examples))]
    if accelerator.device.type == "cpu" and critic_traits(critic).acritique is None:
        heard, passed = catch_user_error(lambda: collect_feedback(critic, own)), passes()
    else:
        # The critic stays in the main thread, where Ctrl-C reaches it.
        with ThreadPoolExecutor(1, initializer=partial(set_current_device, accelerator)) as pool:
            passing = pool.submit(passes)
            heard, passed = catch_user_error(lambda: collect_feedback(critic, own)), passing.result()
    return [said for part in processes.gather_or_raise(heard) for said in part], passed
