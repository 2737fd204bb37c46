"""Inference of gradient-boosted trees with NumPy alone; trained by `benchmarks/train_freeform.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_DTYPES = {"threshold": np.float64, "value": np.float64, "missing_left": np.bool_}  # the others are int64
_BLOCK = 1 << 16  # tests of rows that are computed together: larger arrays leave the processor's cache


@dataclass(frozen=True)
class BoostedTrees:
    """The nodes of all trees in one array per property. A leaf is its own child; a tree has at most 64 of them."""

    columns: tuple[str, ...]
    roots: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    missing_left: NDArray[np.bool_]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    value: NDArray[np.float64]

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> BoostedTrees:
        """Build trees from parsed JSON: the fields above, arrays as lists; a field `depth` is not needed."""
        names = data.keys() - {"columns", "depth"}
        arrays: dict[str, Any] = {name: np.array(data[name], dtype=_DTYPES.get(name, np.int64)) for name in names}
        return cls(columns=tuple(data["columns"]), **arrays)

    def predict_proba(self, names: Sequence[str], matrix: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the probability of each row, (rows,).

        matrix: (rows, features), NaN where a value is missing; names: its columns, a superset of `columns`.
        """
        if not len(matrix):
            return np.zeros(0)
        index = {name: i for i, name in enumerate(names)}
        inputs = matrix.T[[index[column] for column in self.columns]]
        size = max(1, _BLOCK // self._tests.feature.size)
        margins = [self._margins(inputs[:, start : start + size]) for start in range(0, len(matrix), size)]
        probabilities: NDArray[np.float64] = 1 / (1 + np.exp(-np.concatenate(margins)))
        return probabilities

    def _margins(self, inputs: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the sum of all trees' values for each row of a block, (rows,). inputs: (columns, rows)."""
        tests = self._tests
        own = inputs.take(tests.feature, axis=0)  # (tests, trees, rows)
        fails = ~(own <= tests.threshold[:, :, None])
        if np.isnan(inputs).any():
            fails &= ~(np.isnan(own) & tests.missing_left[:, :, None])
        left_out = np.bitwise_or.reduce(fails * tests.left_leaves[:, :, None], axis=0)
        first = np.frexp(~left_out & (left_out + 1))[1] - 1  # the lowest bit that is not set, (trees, rows)
        margins: NDArray[np.float64] = tests.value.take(first.T + tests.starts).sum(axis=1)
        return margins

    @cached_property
    def _tests(self) -> _Tests:
        """The trees as tests of all their inner nodes."""
        trees = [self._walk(root) for root in self.roots.tolist()]
        shape = max(1, *(len(tests) for tests, _ in trees)), len(trees)
        most = max(len(leaves) for _, leaves in trees)
        # trees with fewer inner nodes have tests that leave out no leaf
        nodes, left_leaves = np.zeros(shape, np.int64), np.zeros(shape, np.min_scalar_type((1 << most) - 1))
        for tree, (tests, _) in enumerate(trees):
            for row, (node, bits) in enumerate(tests):
                nodes[row, tree], left_leaves[row, tree] = node, bits
        values = [self.value[leaves] for _, leaves in trees]
        starts = np.cumsum([0, *map(len, values[:-1])])
        return _Tests(
            self.feature[nodes],
            _round_down(self.threshold[nodes]),
            self.missing_left[nodes],
            left_leaves,
            np.concatenate(values),
            starts,
        )

    def _walk(self, root: int) -> tuple[list[tuple[int, int]], list[int]]:
        """Return the inner nodes of a tree, each with the bits of the leaves on its left, and the leaves in order."""
        tests: list[tuple[int, int]] = []
        leaves: list[int] = []

        def visit(node: int) -> None:
            if self.left[node] == node:
                leaves.append(node)
                return
            first = len(leaves)
            visit(int(self.left[node]))
            tests.append((node, (1 << len(leaves)) - (1 << first)))
            visit(int(self.right[node]))

        visit(root)
        return tests, leaves


class _Tests(NamedTuple):
    """All inner nodes of all trees, which are tested at once: (tests of a tree, trees).

    The leaf of a row is the first of its tree, from left to right, that no test leaves out: one that fails leaves out
    the leaves on the left of its node. This is faster in NumPy than descent, which takes a step for each level.
    left_leaves: those leaves as bits. value: of the leaves, one tree after the other, each from its place in `starts`.
    """

    feature: NDArray[np.int64]
    threshold: NDArray[np.float32]
    missing_left: NDArray[np.bool_]
    left_leaves: NDArray[np.unsignedinteger[Any]]
    value: NDArray[np.float64]
    starts: NDArray[np.int64]


def _round_down(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the largest float32 that is not above each value: a float32 is above both of them or above neither."""
    with np.errstate(over="ignore"):
        nearest = values.astype(np.float32)
    rounded: NDArray[np.float32] = np.where(nearest > values, np.nextafter(nearest, np.float32(-np.inf)), nearest)
    return rounded
