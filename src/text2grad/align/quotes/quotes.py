"""Find quotations in a text, and choose among several occurrences; a quotation that is not there is not guessed."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace

from text2grad.align.quotes.normalize import OPENING_MARKS, fold_typography
from text2grad.align.quotes.quote_candidates import Match, MatchKind, find_candidates

__all__ = ["Match", "MatchKind", "locate_quote", "locate_quotes"]

# Scores of one occurrence among several; an exact match, its case included, scores 1.
_REUSED, _OVERLAPPING, _BACKWARDS, _FORWARD, _ORDINAL_MATCH = -8.0, -1.0, -0.5, -0.04, 4.0
_TIE_MARGIN = 0.05  # above what _FORWARD can add: being the nearest occurrence does not break a tie
_BEAM_WIDTH = 32
_MAX_BRANCHES = 64  # occurrences of one quotation that take part in the beam search
_MAX_CONTEXT_DISTANCE = 100  # characters

_ORDINALS = {"first": 0, "second": 1, "third": 2, "fourth": 3, "fifth": 4, "last": -1, "final": -1}
_ORDINAL = re.compile(rf"\b({'|'.join(_ORDINALS)})\s+", re.IGNORECASE)
_OCCURRENCE = re.compile(r"(?:occurrence|mention|use|instance|time|one)\b", re.IGNORECASE)
_AT_THE_END = re.compile(r"\b(?:ends?|ending|ended)\s+(?:with|in|on)\b|\bat the (?:very )?end\b", re.IGNORECASE)
_AT_THE_START = re.compile(
    r"\b(?:begins?|beginning|starts?|starting)\s+with\b|\bat the (?:very )?(?:start|beginning)\b", re.IGNORECASE
)
_CONTEXT_WORD = re.compile(r"\w{3,}")
_COMMON_WORD = re.compile(
    r"(?:about|after|all|also|and|another|any|are|answer|because|been|before|being|both|but|can|could|did|does|done|"
    r"each|either|else|even|ever|every|few|for|from|get|gives|had|has|have|her|here|him|his|how|however|into|its|"
    r"just|like|made|make|many|may|mean|means|might|more|most|much|must|not|now|off|one|only|other|our|out|over|"
    r"own|part|rather|really|same|say|says|sentence|she|should|since|some|such|text|than|that|the|their|them|"
    r"then|there|these|they|thing|things|this|those|though|through|too|two|under|until|use|used|very|was|way|"
    r"well|were|what|when|where|which|while|who|whole|why|will|with|word|words|would|wrong|you|your)"
)


def locate_quote(quote: str, text: str, *, context: str | None = None, threshold: float = 0.75) -> Match | None:
    """Find `quote` in `text`; None if it is not there.

    Comparisons, of which the first that finds anything decides: whole words, up to case, white space and typography;
    up to punctuation and accents; a verbatim part of a longer word or number, if the quotation has at least
    4 characters and is not a number; the parts around an ellipsis, at most 400 characters apart; up to missing spaces;
    fuzzy, with at least the similarity `threshold`.

    Among several occurrences, an exact one is preferred, unless `context` (the critique's words around the quotation,
    the quotation included) favours another: words of the context occur close to it, or the context says 'the second
    "it"' or 'ends with "and"'. In a tie, the first.
    """
    candidates, scores = _scored_candidates(quote, text, context, threshold)
    if not candidates:
        return None
    best = max(scores)
    first_best = next(i for i, score in enumerate(scores) if best - score < _TIE_MARGIN)
    return _share_confidence(candidates[first_best], best, scores)


def locate_quotes(
    quotes: Sequence[str], text: str, *, contexts: Sequence[str | None] | None = None, threshold: float = 0.75
) -> list[Match | None]:
    """Find the quotations of one critique together; contexts[i], where given, belongs to quotes[i].

    As `locate_quote`, and where a quotation occurs more than once: an occurrence is reused, or overlaps that of another
    quotation, only if no other is left; and because critiques follow the order of the text, the nearest occurrence
    after the previous quotation is preferred. Returns one match or None per quotation.
    """
    given = contexts if contexts is not None else [None] * len(quotes)
    branches = [
        _best_candidates(*_scored_candidates(quote, text, context, threshold))
        for quote, context in zip(quotes, given, strict=True)
    ]
    located = [i for i, places in enumerate(branches) if places]
    paths: list[tuple[float, list[Match]]] = [(0.0, [])]
    for i in located:
        longer = [
            (total + score + _path_score(place, path, len(text)), [*path, place])
            for total, path in paths
            for place, score in branches[i]
        ]
        paths = sorted(longer, key=lambda scored: -scored[0])[:_BEAM_WIDTH]
    chosen = dict(zip(located, paths[0][1], strict=True))
    return [_settle(i, chosen, branches[i], len(text)) if i in chosen else None for i in range(len(quotes))]


def _scored_candidates(quote: str, text: str, context: str | None, threshold: float) -> tuple[list[Match], list[float]]:
    """Return the candidates and their scores, each by itself; see `locate_quote`."""
    candidates = find_candidates(quote, text, threshold)
    scores = [float(place.kind == "exact") for place in candidates]
    if len(candidates) > 1 and context:
        context_scores = _context_scores(candidates, quote, text, context)
        scores = [score + words for score, words in zip(scores, context_scores, strict=True)]
        index = _occurrence_index(quote, context)
        if index is not None and index < len(candidates):
            scores[index] += _ORDINAL_MATCH
    return candidates, scores


def _context_scores(candidates: list[Match], quote: str, text: str, context: str) -> list[float]:
    """Score each candidate by the words of the context that occur close to it; rare words count more."""
    low = text.lower()
    words = set(_CONTEXT_WORD.findall(context.lower())) - set(_CONTEXT_WORD.findall(quote.lower()))
    totals = [0.0] * len(candidates)
    places: dict[str, list[int]] = {}
    for match in _CONTEXT_WORD.finditer(low):
        places.setdefault(match[0], []).append(match.start())
    for word in sorted(words):  # the order of a floating-point sum matters
        if _COMMON_WORD.fullmatch(word):
            continue
        positions = places.get(word, [])
        for i, place in enumerate(candidates):
            nearest = bisect_left(positions, place.start)
            gaps = [max(place.start - at - len(word), at - place.end, 0) for at in positions[max(0, nearest - 1) :][:2]]
            if gaps:
                totals[i] += max(0.0, 1 - min(gaps) / _MAX_CONTEXT_DISTANCE) / len(positions)
    return [round(2 * total) / 2 for total in totals]  # differences below half a word are noise


def _occurrence_index(quote: str, context: str) -> int | None:
    """Return the index of the occurrence that the context names ("the second", "at the end"), -1 for the last."""
    quoted = fold_typography(quote).text
    for ordinal in _ORDINAL.finditer(context):
        rest = context[ordinal.end() :]
        if _OCCURRENCE.match(rest) or fold_typography(rest.lstrip(OPENING_MARKS)).text.startswith(quoted):
            return _ORDINALS[ordinal[1].lower()]
    if _AT_THE_END.search(context):
        return -1
    return 0 if _AT_THE_START.search(context) else None


def _path_score(place: Match, path: Sequence[Match], length: int) -> float:
    """Score a place, at most 0, given the places of the quotations before it."""
    score = 0.0
    if any((place.start, place.end) == (other.start, other.end) for other in path):
        score += _REUSED
    elif any(place.start < other.end and other.start < place.end for other in path):
        score += _OVERLAPPING
    previous = path[-1].start if path else 0
    return score + (_BACKWARDS if place.start < previous else _FORWARD * (place.start - previous) / length)


def _best_candidates(candidates: list[Match], scores: list[float]) -> list[tuple[Match, float]]:
    """Return the candidates with the best scores, the earlier ones in ties, in text order."""
    ranked = sorted(zip(candidates, scores, strict=True), key=lambda branch: -branch[1])
    return sorted(ranked[:_MAX_BRANCHES], key=lambda branch: branch[0].start)


def _settle(i: int, chosen: dict[int, Match], branches: list[tuple[Match, float]], length: int) -> Match:
    """Return the chosen place of quotation i; its confidence reflects its lead with the other choices fixed."""
    totals = {}
    for place, score in branches:
        path: list[Match] = []
        for j, other in chosen.items():
            path.append(place if j == i else other)
            score += _path_score(path[-1], path[:-1], length)
        totals[place] = score
    return _share_confidence(chosen[i], totals[chosen[i]], list(totals.values()))


def _share_confidence(chosen: Match, score: float, scores: list[float]) -> Match:
    """Divide the confidence among the places that tie with the chosen one."""
    num_tied = sum(score - other < _TIE_MARGIN for other in scores)
    return replace(chosen, confidence=chosen.confidence / num_tied)
