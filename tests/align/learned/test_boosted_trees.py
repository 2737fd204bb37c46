import numpy as np
import pytest

from text2grad.align.learned.boosted_trees import BoostedTrees

# One tree: x <= 0.5 ? -1 : (y <= 2 ? 0 : 3); a missing x goes left, a missing y goes right. A second one: always 1.
TREES = BoostedTrees.from_dict(
    {
        "columns": ["x", "y"],
        "roots": [0, 5],
        "feature": [0, 0, 1, 0, 0, 0],
        "threshold": [0.5, 0, 2, 0, 0, 0],
        "missing_left": [1, 0, 0, 0, 0, 0],
        "left": [1, 1, 3, 3, 4, 5],
        "right": [2, 1, 4, 3, 4, 5],
        "value": [0, -1, 0, 0, 3, 1],
        "depth": 2,
    }
)
NAN = float("nan")


@pytest.mark.parametrize(("x", "y", "margin"), [(0.5, 9, 0), (0.6, 2, 1), (0.6, 2.1, 4), (NAN, 9, 0), (1, NAN, 4)])
def test_a_row_descends_to_its_leaves(x, y, margin):
    found = TREES.predict_proba(["x", "y"], np.array([[x, y]], np.float32))
    assert found.tolist() == pytest.approx([1 / (1 + np.exp(-margin))])


def test_columns_are_taken_by_name():
    swapped = TREES.predict_proba(["y", "other", "x"], np.array([[9, 7, 0.6]], np.float32))
    assert swapped.tolist() == pytest.approx([1 / (1 + np.exp(-4))])


def test_no_rows_no_probabilities():
    assert TREES.predict_proba(["x", "y"], np.zeros((0, 2), np.float32)).tolist() == []


def test_rows_beyond_one_block_are_the_same_as_one_by_one():
    rows = np.random.default_rng(0).choice([0.4, 0.5, 0.6, 2, 2.1, NAN], (50_000, 2)).astype(np.float32)
    together = TREES.predict_proba(["x", "y"], rows)
    kinds, first = np.unique(np.nan_to_num(rows, nan=-1), axis=0, return_index=True)
    assert len(kinds) == 36
    assert [TREES.predict_proba(["x", "y"], rows[i : i + 1])[0] for i in first] == together[first].tolist()


def test_a_threshold_between_two_float32_numbers_is_exact():
    data = {"columns": ["x"], "roots": [0], "feature": [0, 0, 0], "missing_left": [0, 0, 0], "left": [1, 1, 2]}
    data |= {"right": [2, 1, 2], "value": [0, -1, 1], "threshold": [0.1, 0, 0]}
    above, below = np.float32(0.1), np.nextafter(np.float32(0.1), np.float32(0))
    found = BoostedTrees.from_dict(data).predict_proba(["x"], np.array([[above], [below]]))
    assert (found > 0.5).tolist() == [True, False]  # the float32 that is nearest to 0.1 is above it
