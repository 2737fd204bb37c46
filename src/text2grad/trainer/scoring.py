"""Scores and feedback of a step's samples: each process computes its share, and all get all results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor

from text2grad.critics.base import Critic, collect_feedback, critic_traits
from text2grad.distributed.learner import Learner
from text2grad.distributed.processes import catch_user_error, set_current_device
from text2grad.models.batching import Branch, stack_rows
from text2grad.models.policy import Scores
from text2grad.schema import Example, Feedback
from text2grad.trainer.batch import Rollout
from text2grad.trainer.config import PolicySettings
from text2grad.trainer.losses import k3

T = TypeVar("T")


class LoggedFeedback:
    """A critic that returns the feedback of the examples themselves."""

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        """Return the logged feedback of each example."""
        return [e.feedback or Feedback.failure("logged", "no feedback was logged") for e in examples]


def score(learner: Learner, rollout: Rollout, rows: Sequence[int], args: PolicySettings, reference: bool) -> Scores:
    """Compute log-probabilities, entropy and values of the sampled tokens, each (rows, tokens) on the CPU."""
    scores, _ = score_with_branches(learner, rollout, rows, args, reference)
    return scores


@torch.no_grad()
def score_with_branches(
    learner: Learner,
    rollout: Rollout,
    rows: Sequence[int],
    args: PolicySettings,
    reference: bool,
    branches: Sequence[Branch] = (),
) -> tuple[Scores, dict[int, Tensor]]:
    """As `score`, and the log-probabilities of the branches of these rows, by their index: (tokens,) each."""
    width = max(map(len, rollout.completions))
    scored: list[tuple[list[int], Scores]] = []
    of_branches: list[tuple[int, Tensor]] = []
    learner.policy.eval()
    micro = learner.micro_batches(rollout.prompts, rollout.completions, rows, args.tokens_per_batch, branches)
    for samples, batch in micro:
        scores = Scores(*(tensor.cpu() for tensor in learner.policy(batch, args.temperature, reference=reference)))
        if samples:
            scored.append((samples, Scores(*(lines[: len(samples), :width] for lines in scores))))
            found = zip(batch.branches, scores.logprobs[len(samples) :], strict=True)
            of_branches += [(k, line[: len(branches[k].ids)]) for k, line in found]
    learner.reshard()
    results = {
        i: Scores(*row)
        for samples, scores in learner.processes.gather(scored)
        for i, row in zip(samples, zip(*scores, strict=True), strict=True)
    }
    stacked = Scores(*(stack_rows([results[i][k] for i in rows], width) for k in range(3)))
    return stacked, dict(learner.processes.gather(of_branches))


def behaviour_scores(rollout: Rollout, current: Scores, reference: Scores) -> Scores:
    """Return the scores under the policy that sampled, against which the update takes its ratio.

    For logged completions the reference stands for that policy: the ratio then bounds all steps together.
    """
    return current._replace(logprobs=reference.logprobs) if rollout.logged else current


def token_kl(rollout: Rollout, current: Scores, reference: Scores) -> Tensor:
    """Return the KL from the reference, estimated at each token of a completion: (samples, tokens).

    For logged completions as in the loss: what the policy did not sample, it may find much less probable than the
    reference does; that is no negative KL.
    """
    if rollout.logged:
        return k3(reference.logprobs, current.logprobs) * rollout.mask
    return (current.logprobs - reference.logprobs) * rollout.mask


def collect_feedback_during(
    forward_passes: Callable[[], T], critic: Critic, examples: Sequence[Example], learner: Learner
) -> tuple[list[Feedback], T]:
    """Return the critic's feedback on all samples, and the result of `forward_passes`.

    The two run concurrently on a GPU, or where the critic waits on a network. On the CPU they would only compete for
    the cores.
    """
    accelerator, processes = learner.accelerator, learner.processes
    own = [examples[i] for i in processes.local_slice(len(examples))]
    if accelerator.device.type == "cpu" and critic_traits(critic).acritique is None:
        own_feedback, scores = catch_user_error(lambda: collect_feedback(critic, own)), forward_passes()
    else:
        # The critic stays in the main thread, where Ctrl-C reaches it.
        with ThreadPoolExecutor(1, initializer=partial(set_current_device, accelerator)) as pool:
            future = pool.submit(forward_passes)
            own_feedback, scores = catch_user_error(lambda: collect_feedback(critic, own)), future.result()
    return [item for share in processes.gather_or_raise(own_feedback) for item in share], scores
