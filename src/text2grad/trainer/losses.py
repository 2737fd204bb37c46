"""PPO's clipped losses, importance weights, and the losses of corrections: pure functions over (batch, tokens) tensors.

Each loss is a *sum* over valid tokens, or over corrections. The caller divides by the number of tokens, or by that of
corrections or completions, whichever is larger, in the whole optimiser step, so that micro-batches and processes of
different sizes add up to the same gradient as one big batch.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def clipped_policy_loss(
    logprobs: Tensor,
    old_logprobs: Tensor,
    advantages: Tensor,
    mask: Tensor,
    epsilon: float,
    importance_weights: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """-sum_t w_t * min(ratio_t * A_t, clip(ratio_t, 1 - epsilon, 1 + epsilon) * A_t), ratio_t = pi(y_t) / pi_old(y_t).

    All tensors (batch, tokens); importance_weights: w, as `truncated_importance_weights` returns them; None is 1.
    Returns (loss, number of clipped tokens), both scalars.
    """
    ratio = torch.exp(logprobs - old_logprobs)
    clipped = ratio.clamp(1 - epsilon, 1 + epsilon)
    objective = torch.minimum(ratio * advantages, clipped * advantages)
    if importance_weights is not None:
        objective = objective * importance_weights
    is_clipped = (clipped * advantages < ratio * advantages) & mask.bool()
    return -(objective * mask).sum(), is_clipped.sum()


def truncated_importance_weights(trained: Tensor, sampled: Tensor, clip_max: float = math.inf) -> Tensor:
    """w_t = min(exp(trained_t - sampled_t), clip_max), without a gradient.

    The sampler holds the trainer's weights, but a cache, another precision, other kernels or another engine can change
    its probabilities slightly; w corrects the loss for that, truncated to bound the variance.

    trained, sampled: (batch, tokens), log-probabilities of the sampled tokens under the trainer and the sampler.
    Returns (batch, tokens). Where both agree to the bit, the weight is 1 to the bit.
    """
    return torch.exp(trained.detach() - sampled).clamp(max=clip_max)


def clipped_value_loss(values: Tensor, old_values: Tensor, returns: Tensor, mask: Tensor, epsilon: float) -> Tensor:
    """0.5 * sum_t max((V_t - R_t)^2, (clip(V_t, V_old - epsilon, V_old + epsilon) - R_t)^2).

    All tensors (batch, tokens); returns a scalar.
    """
    clipped = old_values + (values - old_values).clamp(-epsilon, epsilon)
    squared = torch.maximum((values - returns) ** 2, (clipped - returns) ** 2)
    return 0.5 * (squared * mask).sum()


def approximate_kl(logprobs: Tensor, old_logprobs: Tensor, mask: Tensor) -> Tensor:
    """sum_t (ratio_t - 1 - log ratio_t): the KL divergence from the policy that sampled, estimated on its samples (k3).

    All tensors (batch, tokens); returns a scalar. No term is negative, and its expectation is the divergence itself.
    """
    return (k3(logprobs, old_logprobs) * mask).sum()


def k3(logprobs: Tensor, old_logprobs: Tensor) -> Tensor:
    """ratio - 1 - log ratio of each token, never negative. All tensors of one shape."""
    log_ratio = logprobs - old_logprobs
    return torch.expm1(log_ratio) - log_ratio


def kl_loss(logprobs: Tensor, reference: Tensor, mask: Tensor) -> Tensor:
    """sum_t (exp(d_t) - 1 - d_t), d_t = log pi_ref(y_t) - log pi(y_t): the KL penalty in the loss (k3).

    All tensors (batch, tokens); returns a scalar. On the policy's own samples its expectation is KL(pi || pi_ref); on
    other samples it still is 0 at the reference and grows in both directions from it.
    """
    return approximate_kl(reference, logprobs, mask)


def mean_over_tokens(values: Tensor, mask: Tensor) -> Tensor:
    """(batch, tokens) -> (batch,): the mean over the valid tokens of each line; 0 where there is none."""
    return (values * mask).sum(1) / mask.sum(1).clamp(min=1)


def correction_loss(
    logprobs: Tensor, mask: Tensor, weights: Tensor, target_probability: float, robustness: float = 0.0
) -> Tensor:
    """sum_c w_c * mean_t max(target^q - pi(z_ct)^q, 0) / q: raises the tokens z of corrections to a probability.

    q, the robustness, is 1 for the probability itself and goes to 0 for its logarithm: the gradient is that of the
    log-likelihood times pi^q. A token that the policy would hardly ever write moves it little: it may be a wrong
    correction, and its log-likelihood would outweigh all right ones (generalised cross entropy, arXiv 1805.07836).
    A token that has the target probability gets no gradient, however often its correction is repeated.

    logprobs, mask: (corrections, tokens); weights: w, (corrections,). Returns a scalar.
    """
    if robustness:
        target = math.expm1(robustness * math.log(target_probability))
        missing = (target - torch.expm1(robustness * logprobs)) / robustness
    else:
        missing = math.log(target_probability) - logprobs
    return (weights * mean_over_tokens(missing.clamp(min=0), mask)).sum()


def contrastive_loss(corrected: Tensor, written: Tensor, weights: Tensor) -> Tensor:
    """sum_c w_c * -log sigmoid(corrected_c - written_c): prefers a correction to what was written in its place.

    corrected, written: (corrections,), mean log-probabilities of their tokens, each after its own prefix. weights: w,
    (corrections,). Returns a scalar.
    """
    return -(weights * torch.nn.functional.logsigmoid(corrected - written)).sum()
