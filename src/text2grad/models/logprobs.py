"""Log-probabilities of given tokens, without materialising all `tokens x vocabulary` logits."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

Projection = Callable[[Tensor], Tensor]
MAX_LOGITS = 1 << 24  # per chunk: 64 MiB in float32; a few such tensors exist at the same time


def logprob_chunk_size(vocab_size: int) -> int:
    """Return the number of tokens per chunk, so that a chunk has at most MAX_LOGITS logits."""
    return max(MAX_LOGITS // vocab_size, 1)


def chunked_logprobs(
    hidden: Tensor,
    project: Projection,
    targets: Tensor,
    temperature: float,
    chunk_size: int,
    entropy_gradient: bool = False,
) -> tuple[Tensor, Tensor]:
    """Compute the log-probability of each target and the entropy of its distribution.

    hidden: (tokens, width), the state before each target; targets: (tokens,); project: hidden -> logits.
    log pi(y) = log_softmax(project(hidden) / temperature)[y], in float32 or, where the logits are, in float64.
    chunk_size: tokens whose logits exist at once, in both directions: the backward pass recomputes them.
    entropy_gradient: whether the entropy is part of a loss. If not, its activations must not be saved: no backward pass
    would ever free them, so those of all chunks would exist at once.
    Returns (logprobs, entropy), both (tokens,).
    """
    pieces = [
        checkpoint(_chunk_logprobs, states, project, ids, temperature, entropy_gradient, use_reentrant=False)
        for states, ids in zip(torch.split(hidden, chunk_size), torch.split(targets, chunk_size), strict=True)
    ]
    logprobs, entropy = zip(*pieces, strict=True)
    return torch.cat(logprobs), torch.cat(entropy)


def _chunk_logprobs(
    hidden: Tensor, project: Projection, targets: Tensor, temperature: float, entropy_gradient: bool
) -> tuple[Tensor, Tensor]:
    logits = project(hidden)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32)) / temperature
    logprobs = torch.log_softmax(logits, dim=-1)
    with torch.set_grad_enabled(entropy_gradient and torch.is_grad_enabled()):
        entropy = -(logprobs.exp() * logprobs).sum(-1)
    return logprobs.gather(-1, targets.unsqueeze(-1)).squeeze(-1), entropy
