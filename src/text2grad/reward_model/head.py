"""The token head: P(good), P(neutral), P(poor) of every completion token; its labels, loss and calibration."""

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
    """Affine calibration of the head's logits before the softmax: `scale * logits + bias`, fitted on held-out examples.

    prior: frequencies of good, neutral and poor tokens in the training data.
    """

    scale: float = 1.0
    bias: tuple[float, float, float] = (0.0, 0.0, 0.0)
    prior: tuple[float, float, float] = (0.0, 1.0, 0.0)

    @property
    def centre(self) -> float:
        """P(good) - P(poor) under the class frequencies of the training data."""
        return self.prior[GOOD] - self.prior[POOR]

    def probabilities(self, logits: Tensor) -> Probabilities:
        """Return calibrated probabilities, (tokens, 3), of logits of the same shape."""
        shifted = self.scale * logits.double().cpu() + torch.tensor(self.bias, dtype=torch.float64)
        result: Probabilities = shifted.softmax(-1).numpy()
        return result


def token_labels(feedback: Feedback, offsets: Sequence[Range]) -> list[int]:
    """Return the class of each token: that of the spans it overlaps, of the more severe one where they disagree.

    Good and poor spans of equal severity make a token neutral. Graded scores count as spans of that severity.
    """
    starts, ends = np.asarray(offsets, dtype=np.int64).reshape(-1, 2).T
    praise, blame = np.zeros(len(offsets)), np.zeros(len(offsets))
    for start, end, value in signed_ranges(feedback):
        inside = (starts < end) & (ends > start) & (ends > starts)
        severity = praise if value > 0 else blame
        severity[inside] = np.maximum(severity[inside], abs(value))
    balance = praise - blame
    return [GOOD if value > 0 else POOR if value < 0 else NEUTRAL for value in balance]


def class_weights(counts: Sequence[int], balance: float) -> Tensor:
    """Return loss weights per class, (3,), with mean 1 over the tokens: (1 / frequency) ** balance; 0 without tokens.

    balance: 0 weights all tokens equally, 1 all classes equally.
    """
    shares = torch.tensor(counts, dtype=torch.float64) / max(sum(counts), 1)
    weights = torch.where(shares > 0, shares.clamp(min=1e-12) ** -balance, 0.0)
    mean = (weights * shares).sum()
    return (weights / mean if mean > 0 else weights).float()


def head_loss(logits: Tensor, labels: Tensor, rows: Tensor, weights: Tensor) -> Tensor:
    """Compute the weighted cross-entropy: the mean over each row's tokens, then over the rows.

    logits: (tokens, 3); labels, rows: (tokens,), the class and the batch row of each token; weights: (3,), per class.
    Every completion has the same weight: otherwise long ones would dominate short ones.
    """
    if not len(labels):
        return logits.sum() * 0.0
    losses = F.cross_entropy(logits.float(), labels, reduction="none") * weights.to(logits.device)[labels]
    lengths = torch.bincount(rows)
    return (losses / lengths[rows]).sum() / (lengths > 0).sum()


def expected_reward(probabilities: Probabilities) -> NDArray[np.float64]:
    """Return P(good) - P(poor) of each token, in [-1, 1]. (tokens, 3) -> (tokens,)."""
    difference: NDArray[np.float64] = probabilities[:, GOOD] - probabilities[:, POOR]
    return difference


def calibrate(logits: Tensor, labels: Tensor) -> Calibration:
    """Fit scale and bias by maximum likelihood. logits: (tokens, 3); labels: (tokens,).

    The problem is convex with four parameters, which L-BFGS solves. A class that never occurs keeps bias 0.
    """
    logits, labels = logits.double().cpu(), labels.cpu()
    seen = torch.tensor([bool((labels == i).any()) for i in range(3)])
    if len(labels) == 0 or seen.sum() < 2:
        return Calibration()
    # The logarithm keeps the scale positive, and with it the ranking.
    log_scale = torch.zeros((), dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([log_scale, bias], max_iter=200, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimiser.zero_grad()
        # Regularisation keeps the parameters finite on separable data.
        penalty = 1e-5 * (bias.square().sum() + log_scale.square())
        value = F.cross_entropy(log_scale.exp() * logits + bias * seen, labels) + penalty
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimiser.step(loss)  # type: ignore[no-untyped-call]
    fitted = (bias * seen).tolist()
    return Calibration(scale=log_scale.exp().item(), bias=(fitted[0], fitted[1], fitted[2]))


class TokenHead(nn.Linear):
    """A float32 linear layer, zero-initialised: at first all classes are equally probable."""

    def __init__(self, width: int) -> None:
        super().__init__(width, len(CLASSES), dtype=torch.float32)
        nn.init.zeros_(self.weight)
        nn.init.zeros_(self.bias)

    def forward(self, states: Tensor) -> Tensor:
        """Return float32 logits, (tokens, 3), of states (tokens, width), also under autocast."""
        with torch.autocast(states.device.type, enabled=False):
            return super().forward(states.float())
