"""Even subsampling of the records of a run, to bound the size of its report."""

from collections.abc import Sequence
from itertools import zip_longest


def subsample_by_step(steps: Sequence[int], limit: int) -> list[int]:
    """Return the positions of at most `limit` records, spread evenly over their steps, in ascending order.

    Every step contributes its first record before any contributes its second, so the whole run stays represented;
    the last round, which does not fit, is subsampled and keeps its first and last step.
    """
    by_step: dict[int, list[int]] = {}
    for position, step in enumerate(steps):
        by_step.setdefault(step, []).append(position)
    selected: list[int] = []
    for row in zip_longest(*(by_step[step] for step in sorted(by_step))):
        selected += subsample([position for position in row if position is not None], limit - len(selected))
        if len(selected) == limit:
            break
    return sorted(selected)


def subsample(items: Sequence[int], limit: int) -> list[int]:
    """Return at most `limit` items at even distances, always with the first and, for limits above 1, the last."""
    if len(items) <= limit:
        return list(items)
    if limit == 1:
        return [items[0]]
    return [items[round(i * (len(items) - 1) / (limit - 1))] for i in range(limit)]
