"""Which place of an answer one clause of a comment means: the candidates of all sources, ranked by small boosted trees.

The trees predict how well a candidate fits (the F1 of its words, to a power that favours close fits). The best one is
the answer, its confidence the calibrated share of such places that were right; a clause whose best candidate is
improbable is about nothing in the answer. Trained by `benchmarks/train_places.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from text2grad.align.answer.document import Document
from text2grad.align.answer.parts import find_parts
from text2grad.align.answer.proposals import Proposal, Source
from text2grad.align.answer.subjects import find_subjects
from text2grad.align.code.behaviour import find_behaviours
from text2grad.align.code.code_comments import find_code_places
from text2grad.align.learned.boosted_trees import BoostedTrees
from text2grad.align.places.place_candidates import Candidate, find_candidates
from text2grad.align.places.place_features import Matrix, compute_place_features
from text2grad.align.places.targets import find_hints, find_targets
from text2grad.align.quotes.quotes import Match
from text2grad.align.weight_files import load_weights
from text2grad.schema import Range

Cited = Sequence[tuple[Range, Match | None]]


class Gathered(NamedTuple):
    """The candidates for a clause, what the other sources propose, and the features of the candidates."""

    candidates: list[Candidate]
    proposals: list[tuple[str, Proposal]]
    names: list[str]
    features: Matrix


def rank_places(
    comment: str, bounds: Range, stance: str, document: Document, prompt: str, cited: Cited
) -> Proposal | None:
    """Return the best candidate for the clause comment[start:end] with calibrated confidence; None if none is likely.

    cited: the comment's quotations of the answer. The source is that of another source's proposal where it is the same
    place, "whole" for the whole answer, else "paraphrase".
    """
    found, model = gather(comment, bounds, stance, document, prompt, cited), _load_model()
    fits = model.trees.predict_proba(found.names, found.features)
    best = int(fits.argmax())
    if fits[best] < model.gate:
        return None
    candidate, confidence = found.candidates[best], float(np.interp(fits[best], *model.calibration))
    if candidate.level == "whole":
        return Proposal("whole", bounds, candidate.places, confidence)
    same = [proposal for _, proposal in found.proposals if proposal.places == candidate.places]
    source: Source = same[0].source if same else "paraphrase"
    return Proposal(source, same[0].phrase if same else bounds, candidate.places, confidence)


def gather(comment: str, bounds: Range, stance: str, document: Document, prompt: str, cited: Cited) -> Gathered:
    """Return the candidates for a clause with their features."""
    chosen = find_targets(comment, bounds, document, cited)
    proposals: list[tuple[str, Proposal]] = [(proposal.source, proposal) for proposal in chosen]
    proposals += [("chosen", proposal) for proposal in chosen]
    proposals += [("part", part) for part in find_parts(comment, *bounds, document)]
    if document.program is not None:
        proposals += [("structure", place) for place in find_code_places(comment, bounds, document.program)]
        proposals += [("behaviour", place) for place in find_behaviours(comment, *bounds, document.program)]
    else:
        proposals += [(hint.source, hint) for hint in find_hints(comment, bounds, document)]
        proposals += [(subject.source, subject) for subject in find_subjects(comment, *bounds, document)]
    if len(chosen) > 1:
        places = tuple(sorted({place for proposal in chosen for place in proposal.places}))
        confidence = max(proposal.confidence for proposal in chosen)
        proposals.append(("chosen", Proposal(chosen[0].source, bounds, places, confidence)))
    own = [proposal for _, proposal in proposals]
    candidates = find_candidates(document, prompt, comment[slice(*bounds)], own)
    features = compute_place_features(comment, bounds, stance, document, prompt, candidates, proposals)
    return Gathered(candidates, proposals, *features)


class _Model(NamedTuple):
    trees: BoostedTrees
    gate: float  # the fit of the best candidate below which the clause is about nothing
    calibration: NDArray[np.float64]  # (2, knots): fit, share of places that were right


@lru_cache
def _load_model() -> _Model:
    return parse_model(load_weights("text2grad.align", "places"))


def parse_model(data: dict[str, Any]) -> _Model:
    """Build a model from parsed JSON, as `benchmarks/train_places.py` writes it."""
    return _Model(BoostedTrees.from_dict(data["trees"]), data["gate"], np.array(data["calibration"]))
