"""Gradient-boosted trees as plain arrays: learned elsewhere, evaluated here with NumPy alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Trees:
    """All nodes of all trees in one row. A leaf's children are itself, so that walking on stays there."""

    columns: tuple[str, ...]
    roots: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    missing_left: NDArray[np.bool_]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    value: NDArray[np.float64]
    depth: int

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Trees:
        """From the JSON that `to_dict` of the training script writes: the arrays above, as lists."""
        return cls(
            columns=tuple(data["columns"]),
            roots=np.array(data["roots"], dtype=np.int64),
            feature=np.array(data["feature"], dtype=np.int64),
            threshold=np.array(data["threshold"], dtype=np.float64),
            missing_left=np.array(data["missing_left"], dtype=np.bool_),
            left=np.array(data["left"], dtype=np.int64),
            right=np.array(data["right"], dtype=np.int64),
            value=np.array(data["value"], dtype=np.float64),
            depth=int(data["depth"]),
        )

    def probabilities(self, names: Sequence[str], matrix: NDArray[np.float32]) -> NDArray[np.float64]:
        """matrix: (rows, features), its columns called `names`, NaN where a value is missing. Returns (rows,)."""
        if not len(matrix):
            return np.zeros(0)
        where = {name: i for i, name in enumerate(names)}
        inputs = matrix[:, [where[column] for column in self.columns]]
        rows = np.arange(len(inputs))[:, None]
        nodes = np.repeat(self.roots[None, :], len(inputs), axis=0)  # (rows, trees)
        for _ in range(self.depth):
            values = inputs[rows, self.feature[nodes]]
            goes_left = np.where(np.isnan(values), self.missing_left[nodes], values <= self.threshold[nodes])
            nodes = np.where(goes_left, self.left[nodes], self.right[nodes])
        probabilities: NDArray[np.float64] = 1 / (1 + np.exp(-self.value[nodes].sum(axis=1)))
        return probabilities
