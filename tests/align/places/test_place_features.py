"""Tests of the features of places."""

import numpy as np

from text2grad.align.answer.document import Document
from text2grad.align.answer.proposals import Proposal
from text2grad.align.places.place_candidates import Candidate
from text2grad.align.places.place_features import compute_place_features, masks

TEXT = "The cat sleeps. The dog barks loudly."
CAT, DOG = (0, 15), (16, 37)


def _features(clause: str, proposals: tuple[tuple[str, Proposal], ...] = ()) -> dict[str, list[float]]:
    candidates = [Candidate("sentence", (CAT,)), Candidate("sentence", (DOG,))]
    names, matrix = compute_place_features(clause, (0, len(clause)), "poor", Document(TEXT), "", candidates, proposals)
    assert np.isfinite(matrix).all()
    return dict(zip(names, matrix.T.tolist(), strict=True))


def test_masks_are_the_words_of_the_places() -> None:
    assert masks(TEXT, "", [(CAT,), (DOG,), ((4, 7), (20, 23))]).sum(1).tolist() == [3, 4, 2]


def test_shared_words_favour_their_sentence() -> None:
    found = _features("I doubt that dogs bark.")
    assert found["exact"][1] > found["exact"][0] == 0
    assert found["exact_below_best"][1] == 0


def test_similar_words_favour_their_sentence() -> None:
    found = _features("I cannot stand that noise.")
    assert found["exact"] == [0, 0]
    assert found["soft"][1] > found["soft"][0]


def test_proposals_of_other_sources_are_columns() -> None:
    found = _features("The last sentence.", (("part", Proposal("part", (4, 17), (DOG,), 0.9)),))
    assert np.allclose(found["part_fits"], [0, 0.9])
    assert found["name_fits"] == [0, 0]


def test_clause_without_words_has_features() -> None:
    assert _features("???")["exact"] == [0, 0]
