"""Which records to keep when a run has more than a page can carry."""

from collections.abc import Sequence
from itertools import zip_longest


def even_selection(steps: Sequence[int], limit: int) -> list[int]:
    """Positions of at most `limit` records, spread evenly over the steps they belong to, in ascending order.

    Every step gives its first record before any gives its second, so that the whole run stays in view;
    the round that no longer fits is thinned evenly and keeps its first and last step.
    """
    by_step: dict[int, list[int]] = {}
    for position, step in enumerate(steps):
        by_step.setdefault(step, []).append(position)
    chosen: list[int] = []
    for row in zip_longest(*(by_step[step] for step in sorted(by_step))):
        chosen += spread([position for position in row if position is not None], limit - len(chosen))
        if len(chosen) == limit:
            break
    return sorted(chosen)


def spread(items: Sequence[int], limit: int) -> list[int]:
    """At most `limit` of the items at even distances, the first and (from two on) the last among them."""
    if len(items) <= limit:
        return list(items)
    if limit == 1:
        return [items[0]]
    return [items[round(i * (len(items) - 1) / (limit - 1))] for i in range(limit)]
