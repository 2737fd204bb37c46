"""Which place of an answer one clause of a comment means: all sources' candidates, ranked by small boosted trees."""

from __future__ import annotations

from collections.abc import Sequence

from text2grad.align.comments import find_mentions
from text2grad.align.behaviour import find_behaviours
from text2grad.align.code_comments import find_code_places
from text2grad.align.document import Document
from text2grad.align.learned.candidates import Candidate, find_candidates
from text2grad.align.learned.place_features import Matrix, compute_place_features
from text2grad.align.proposals import Proposal
from text2grad.align.quotes import Match
from text2grad.align.subjects import find_subjects
from text2grad.align.targets import find_hints, find_targets
from text2grad.align.parts import find_parts
from text2grad.schema import Range


def gather(
    comment: str,
    bounds: Range,
    stance: str,
    document: Document,
    prompt: str,
    cited: Sequence[tuple[Range, Match | None]],
) -> tuple[list[Candidate], list[str], Matrix]:
    """Return the candidates for a clause, and their features."""
    chosen = find_targets(comment, bounds, document, cited)
    proposals = [(proposal.source, proposal) for proposal in chosen]
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
        proposals.append(("chosen", Proposal(chosen[0].source, bounds, places, max(p.confidence for p in chosen))))
    own = [proposal for _, proposal in proposals]
    candidates = find_candidates(document, prompt, comment[slice(*bounds)], own)
    return candidates, *compute_place_features(comment, bounds, stance, document, prompt, candidates, proposals)
