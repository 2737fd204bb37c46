"""Log-probabilities of given tokens, without materialising all `tokens x vocabulary` logits."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

Projection = Callable[[Tensor], Tensor]
# Logits per chunk: 64 MiB in float32 on a CPU, 512 MiB on a GPU; a few such tensors exist at the same time. Every chunk
# reads the output layer, and the backward pass writes its gradient: with a hundred tokens a GPU does little else.
MAX_LOGITS = {"cpu": 1 << 24, "cuda": 1 << 27}


def logprob_chunk_size(vocab_size: int, device: str = "cpu") -> int:
    """Return the number of tokens per chunk, so that it has at most MAX_LOGITS logits. device: a type, as `cuda`."""
    return max(MAX_LOGITS.get(device, MAX_LOGITS["cpu"]) // vocab_size, 1)


def chunked_logprobs(
    hidden: Tensor,
    project: Projection,
    targets: Tensor,
    temperature: float,
    chunk_size: int,
    entropy_gradient: bool = False,
    with_entropy: bool = True,
) -> tuple[Tensor, Tensor]:
    """Compute the log-probability of each target and the entropy of its distribution.

    hidden: (tokens, width), the state before each target; targets: (tokens,); project: hidden -> logits.
    log pi(y) = log_softmax(project(hidden) / temperature)[y], in float32 or, where the logits are, in float64.
    chunk_size: tokens whose logits exist at once, in both directions: the backward pass recomputes them.
    entropy_gradient: whether the entropy is part of a loss. If not, its activations must not be saved: no backward pass
    would ever free them, so those of all chunks would exist at once.
    with_entropy: False returns 0 in its place, which saves half of the work on the logits.
    Returns (logprobs, entropy), both (tokens,).
    """
    pieces = [
        checkpoint(
            _chunk_logprobs, states, project, ids, temperature, entropy_gradient, with_entropy, use_reentrant=False
        )
        for states, ids in zip(torch.split(hidden, chunk_size), torch.split(targets, chunk_size), strict=True)
    ]
    logprobs, entropy = zip(*pieces, strict=True)
    return torch.cat(logprobs), torch.cat(entropy)


def _chunk_logprobs(
    hidden: Tensor,
    project: Projection,
    targets: Tensor,
    temperature: float,
    entropy_gradient: bool,
    with_entropy: bool,
) -> tuple[Tensor, Tensor]:
    logits = project(hidden)
    dtype = torch.promote_types(logits.dtype, torch.float32)
    if temperature != 1:
        logits = logits.to(dtype) / temperature
    all_logprobs = torch.log_softmax(logits, dim=-1, dtype=dtype)
    # First what the gradient needs: recomputation stops there, before the entropy.
    logprobs = all_logprobs.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    if not with_entropy:
        return logprobs, torch.zeros_like(logprobs)
    with torch.set_grad_enabled(entropy_gradient and torch.is_grad_enabled()):
        return logprobs, -(all_logprobs.exp() * all_logprobs).sum(-1)
