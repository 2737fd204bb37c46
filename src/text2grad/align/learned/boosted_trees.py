"""Inference of gradient-boosted trees with NumPy alone; trained by `benchmarks/train_freeform.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

_DTYPES = {"threshold": np.float64, "value": np.float64, "missing_left": np.bool_}  # the others are int64


@dataclass(frozen=True)
class BoostedTrees:
    """The nodes of all trees in one array per property. A leaf is its own child, so that descent ends there."""

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
    def from_dict(cls, data: Mapping[str, Any]) -> BoostedTrees:
        """Build trees from parsed JSON: the fields above, arrays as lists."""
        names = data.keys() - {"columns", "depth"}
        arrays: dict[str, Any] = {name: np.array(data[name], dtype=_DTYPES.get(name, np.int64)) for name in names}
        return cls(columns=tuple(data["columns"]), depth=int(data["depth"]), **arrays)

    def predict_proba(self, names: Sequence[str], matrix: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the probability of each row, (rows,).

        matrix: (rows, features), NaN where a value is missing; names: its columns, a superset of `columns`.
        """
        if not len(matrix):
            return np.zeros(0)
        index = {name: i for i, name in enumerate(names)}
        inputs = matrix[:, [index[column] for column in self.columns]].astype(np.float64)
        has_missing = bool(np.isnan(inputs).any())
        values, width = inputs.ravel(), inputs.shape[1]
        starts = np.arange(0, len(values), width)[:, None]
        nodes = np.repeat(self.roots[None, :], len(inputs), axis=0)  # (rows, trees)
        for _ in range(self.depth):
            own = values.take(starts + self.feature.take(nodes))
            goes_left = own <= self.threshold.take(nodes)
            if has_missing:
                goes_left = np.where(np.isnan(own), self.missing_left.take(nodes), goes_left)
            nodes = self._children.take(2 * nodes + goes_left)
        probabilities: NDArray[np.float64] = 1 / (1 + np.exp(-self.value.take(nodes).sum(axis=1)))
        return probabilities

    @cached_property
    def _children(self) -> NDArray[np.int64]:
        """The right and the left child of each node in turn."""
        return np.stack([self.right, self.left], axis=1).ravel()
