"""Log-probabilities of given tokens, without ever holding `tokens x vocabulary` at once."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

Project = Callable[[Tensor], Tensor]
LOGITS_AT_ONCE = 1 << 24  # 64 MiB in float32; a few such tensors live at the same time


def tokens_at_once(vocabulary: int) -> int:
    """The chunk for a vocabulary of this size: the larger the one, the smaller the other."""
    return max(LOGITS_AT_ONCE // vocabulary, 1)


def chunked_logprobs(
    hidden: Tensor,
    project: Project,
    targets: Tensor,
    temperature: float,
    chunk: int,
    entropy_gradient: bool = False,
) -> tuple[Tensor, Tensor]:
    """Log-probability of each target and the entropy of the distribution it was drawn from.

    hidden: (tokens, width), the state before each target; targets: (tokens,); project: hidden -> logits.
    log pi(y) = log_softmax(project(hidden) / temperature)[y], in float32 or, where the logits are, in float64.
    chunk: tokens whose logits exist at once, in both directions: the backward pass computes them again.
    entropy_gradient: whether the entropy is part of a loss. Where it is not, what its gradient would need must not be
    kept: nobody asks for it in the backward pass, so it would lie there for every chunk at once.
    Returns (logprobs, entropy), both (tokens,).
    """
    pieces = [
        checkpoint(_logprobs_of_chunk, states, project, chosen, temperature, entropy_gradient, use_reentrant=False)
        for states, chosen in zip(torch.split(hidden, chunk), torch.split(targets, chunk), strict=True)
    ]
    logprobs, entropy = zip(*pieces, strict=True)
    return torch.cat(logprobs), torch.cat(entropy)


def _logprobs_of_chunk(
    hidden: Tensor, project: Project, targets: Tensor, temperature: float, entropy_gradient: bool
) -> tuple[Tensor, Tensor]:
    logits = project(hidden)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32)) / temperature
    logprobs = torch.log_softmax(logits, dim=-1)
    with torch.set_grad_enabled(entropy_gradient and torch.is_grad_enabled()):
        entropy = -(logprobs.exp() * logprobs).sum(-1)
    return logprobs.gather(-1, targets.unsqueeze(-1)).squeeze(-1), entropy
