"""The token head: P(good), P(neutral), P(poor) for every token of an answer, and what becomes of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from text2grad.rewards.credit import signed_ranges
from text2grad.schema import Feedback, Range
from text2grad.settings import Settings

CLASSES = ("good", "neutral", "poor")
GOOD, NEUTRAL, POOR = range(3)
IGNORE = -100
Probabilities = NDArray[np.float64]  # (tokens, 3)


class Calibration(Settings):
    """What is done to the head's logits before the softmax: `scale * logits + bias`, fitted on held-out answers.

    prior: the shares of good, neutral and poor tokens in the training data.
    """

    scale: float = 1.0
    bias: tuple[float, float, float] = (0.0, 0.0, 0.0)
    prior: tuple[float, float, float] = (0.0, 1.0, 0.0)

    @property
    def centre(self) -> float:
        """P(good) - P(poor) of a token of which nothing is known."""
        return self.prior[GOOD] - self.prior[POOR]

    def probabilities(self, logits: Tensor) -> Probabilities:
        """logits: (tokens, 3). Returns their calibrated probabilities."""
        shifted = self.scale * logits.double().cpu() + torch.tensor(self.bias, dtype=torch.float64)
        result: Probabilities = shifted.softmax(-1).numpy()
        return result


def token_labels(feedback: Feedback, offsets: Sequence[Range]) -> list[int]:
    """The class of each token: that of the spans it overlaps, of the more severe one where they disagree.

    Praise and blame of equal severity leave a token neutral. Graded scores count as spans of that severity.
    """
    starts, ends = np.asarray(offsets, dtype=np.int64).reshape(-1, 2).T
    praise, blame = np.zeros(len(offsets)), np.zeros(len(offsets))
    for start, end, value in signed_ranges(feedback):
        inside = (starts < end) & (ends > start) & (ends > starts)
        said = praise if value > 0 else blame
        said[inside] = np.maximum(said[inside], abs(value))
    balance = praise - blame
    return [GOOD if value > 0 else POOR if value < 0 else NEUTRAL for value in balance]


def class_weights(counts: Sequence[int], balance: float) -> Tensor:
    """Loss weights by class, (3,), with mean 1 over the tokens: (1 / share) ** balance. A class without tokens gets 0.

    balance: 0 weighs all tokens alike, 1 all classes alike.
    """
    shares = torch.tensor(counts, dtype=torch.float64) / max(sum(counts), 1)
    weights = torch.where(shares > 0, shares.clamp(min=1e-12) ** -balance, 0.0)
    mean = (weights * shares).sum()
    return (weights / mean if mean > 0 else weights).float()


def head_loss(logits: Tensor, labels: Tensor, answers: Tensor, weights: Tensor) -> Tensor:
    """Weighted cross-entropy: the mean over each answer's tokens, then over the answers.

    logits: (tokens, 3); labels, answers: (tokens,), the class and the answer of each; weights: (3,), by class.
    Every answer counts alike: where long and short ones are mixed, the short ones would hardly be heard otherwise.
    """
    if not len(labels):
        return logits.sum() * 0.0
    losses = F.cross_entropy(logits.float(), labels, reduction="none") * weights.to(logits.device)[labels]
    lengths = torch.bincount(answers)
    return (losses / lengths[answers]).sum() / (lengths > 0).sum()


def expectation(probabilities: Probabilities) -> NDArray[np.float64]:
    """P(good) - P(poor) of each token, in [-1, 1]."""
    difference: NDArray[np.float64] = probabilities[:, GOOD] - probabilities[:, POOR]
    return difference


def calibrate(logits: Tensor, labels: Tensor) -> Calibration:
    """Scale and bias with the best likelihood. logits: (tokens, 3); labels: (tokens,).

    The problem is convex with four parameters, so Newton-like steps settle it. A class that never occurs keeps its
    bias: nothing is known about it.
    """
    logits, labels = logits.double().cpu(), labels.cpu()
    seen = torch.tensor([bool((labels == i).any()) for i in range(3)])
    if len(labels) == 0 or seen.sum() < 2:
        return Calibration()
    log_scale = torch.zeros((), dtype=torch.float64, requires_grad=True)  # a negative scale would turn the ranking over
    bias = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([log_scale, bias], max_iter=200, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimiser.zero_grad()
        # The slight pull to the middle keeps separable data from running to infinity.
        pull = 1e-5 * (bias.square().sum() + log_scale.square())
        value = F.cross_entropy(log_scale.exp() * logits + bias * seen, labels) + pull
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimiser.step(loss)  # type: ignore[no-untyped-call]
    fitted = (bias * seen).tolist()
    return Calibration(scale=log_scale.exp().item(), bias=(fitted[0], fitted[1], fitted[2]))


class TokenHead(nn.Linear):
    """A linear layer in float32 that starts at zero: at first every class is as probable."""

    def __init__(self, width: int) -> None:
        super().__init__(width, len(CLASSES), dtype=torch.float32)
        nn.init.zeros_(self.weight)
        nn.init.zeros_(self.bias)

    def forward(self, states: Tensor) -> Tensor:
        """states: (tokens, width). Returns logits (tokens, 3), whatever the precision around it."""
        with torch.autocast(states.device.type, enabled=False):
            return super().forward(states.float())
