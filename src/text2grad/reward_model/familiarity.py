"""How unlike the training data a completion is, and how much its feedback is weakened for that.

A completion is the mean of its last hidden states. Its distance to the nearest completions of the training data is
compared with how far those are from their own neighbours (as in local outlier factors), so that sets of different
density can be mixed, and with the same ratio of completions that were held out from training.
"""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor

from text2grad.schema import Feedback

NEIGHBOURS = 8
MAX_REFERENCES = 1024  # completions of the training data that are kept
FAMILIAR = 2.0  # standard deviations: a completion up to here is one of those that training has prepared for


class Familiarity:
    """Completions of the training data, and what is usual among held-out ones.

    references: (items, width), features of completions of the training data.
    usual, spread: mean and standard deviation of the logarithm of the held-out completions' ratios.
    """

    def __init__(self, references: Tensor, usual: float, spread: float) -> None:
        self.references, self.usual, self.spread = references, usual, spread
        self._centre = references.mean(0)
        self._directions = self._normalize(references)
        to_others = torch.cdist(self._directions, self._directions).fill_diagonal_(float("inf"))
        self._scales = _nearest(to_others)[0].mean(-1).clamp(min=1e-6)

    @classmethod
    def fit(cls, references: Tensor, heldout: Tensor) -> Self | None:
        """Return the familiarity with these features, (items, width) each; None if there are too few of either."""
        if len(references) <= NEIGHBOURS or len(heldout) < 2:
            return None
        model = cls(references, usual=0.0, spread=1.0)
        ratios = model.distances(heldout)
        model.usual, model.spread = float(ratios.mean()), max(float(ratios.std()), 1e-3)
        return model

    def distances(self, features: Tensor) -> Tensor:
        """Return how far each completion is, (items,), of features (items, width).

        0 is the mean of held-out completions of the training sets, 1 one standard deviation further.
        """
        near, neighbours = _nearest(torch.cdist(self._normalize(features.float().cpu()), self._directions))
        ratios = near.mean(-1).clamp(min=1e-6) / self._scales[neighbours].mean(-1)
        return (ratios.log() - self.usual) / self.spread

    def state(self) -> dict[str, Tensor]:
        """Return what `from_state` needs, to be saved beside the weights."""
        return {"references": self.references, "usual_and_spread": torch.tensor([self.usual, self.spread])}

    @classmethod
    def from_state(cls, state: dict[str, Tensor]) -> Self:
        """Return the familiarity that was saved."""
        usual, spread = state["usual_and_spread"].tolist()
        return cls(state["references"].float(), usual, spread)

    def _normalize(self, features: Tensor) -> Tensor:
        return torch.nn.functional.normalize(features - self._centre, dim=-1)


def trust(distance: float) -> float:
    """Return the factor of the feedback on a completion: 1 up to FAMILIAR, then exp(FAMILIAR - distance)."""
    return float(torch.tensor(min(FAMILIAR - distance, 0.0)).exp())


def weaken(feedback: Feedback, factor: float) -> Feedback:
    """Return feedback whose rewards are multiplied by a factor in (0, 1]: confidences, and scores.

    Severities stay: how much a fault matters does not depend on how certain it is.
    """
    if factor == 1.0 or feedback.status == "failed":
        return feedback
    spans = [span.model_copy(update={"confidence": span.confidence * factor}) for span in feedback.spans]
    omissions = [one.model_copy(update={"confidence": one.confidence * factor}) for one in feedback.omissions]
    scores = feedback.scores and [(start, end, value * factor) for start, end, value in feedback.scores]
    score = None if feedback.score is None else feedback.score * factor
    update = {"spans": spans, "omissions": omissions, "scores": scores, "score": score}
    return feedback.model_copy(update=update)


def _nearest(distances: Tensor) -> tuple[Tensor, Tensor]:
    """Return the distances and indices of the nearest columns of each row, (rows, at most NEIGHBOURS)."""
    near = distances.topk(min(NEIGHBOURS, distances.shape[1] - 1), largest=False)
    return near.values, near.indices
