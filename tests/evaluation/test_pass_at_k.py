"""pass@k against the count of all subsets."""

from __future__ import annotations

from itertools import combinations

import pytest

from text2grad.evaluation.pass_at_k import pass_at_k


@pytest.mark.parametrize(("samples", "passed", "k"), [(5, 2, 3), (4, 0, 2), (4, 4, 1), (6, 1, 6), (7, 3, 2)])
def test_it_is_the_share_of_subsets_with_a_program_that_passes(samples: int, passed: int, k: int) -> None:
    results = [True] * passed + [False] * (samples - passed)
    subsets = list(combinations(results, k))
    assert pass_at_k(samples, passed, k) == pytest.approx(sum(map(any, subsets)) / len(subsets))
