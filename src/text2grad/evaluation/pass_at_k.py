"""pass@k: the probability that one of k programs passes the tests."""

from __future__ import annotations

from math import comb


def pass_at_k(num_samples: int, num_passed: int, k: int) -> float:
    """Return the unbiased estimate from `num_samples` programs for one problem (Chen et al., 2021).

    1 - C(n - c, k) / C(n, k): one minus the share of all sets of k samples in which none passes; k <= n.
    """
    return 1.0 - comb(num_samples - num_passed, k) / comb(num_samples, k)
