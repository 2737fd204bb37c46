"""Where in a text a quotation stands: found, with how and how surely, or not found; never guessed."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace

from text2grad.align.forms import How, Match, occurrences
from text2grad.align.normalize import folded

__all__ = ["How", "Match", "locate", "locate_all"]

# What speaks for one occurrence among several, in units of "written in exactly this case".
_REUSED, _OVERLAPPING, _BACKWARDS, _FORWARD, _NEAR, _COUNTED = -8.0, -1.0, -0.5, -0.04, 2.0, 4.0
_UNDECIDED = 0.05  # occurrences closer than this are a toss-up; being the nearest one (_FORWARD) decides nothing
_BEAM = 32
_BRANCHES = 64  # occurrences of one quotation that are weighed against those of the others
_CLOSE = 100  # characters at which a word of the context has lost its say

_ORDINALS = {"first": 0, "second": 1, "third": 2, "fourth": 3, "fifth": 4, "last": -1, "final": -1}
_ORDINAL = re.compile(rf"\b({'|'.join(_ORDINALS)})\s+", re.IGNORECASE)
_OCCURRENCE = re.compile(r"(?:occurrence|mention|use|instance|time|one)\b", re.IGNORECASE)
_OPENING = "\"'`“‘«„"
_AT_THE_END = re.compile(r"\b(?:ends?|ending|ended)\s+(?:with|in|on)\b|\bat the (?:very )?end\b", re.IGNORECASE)
_AT_THE_START = re.compile(
    r"\b(?:begins?|beginning|starts?|starting)\s+with\b|\bat the (?:very )?(?:start|beginning)\b", re.IGNORECASE
)
_CONTEXT_WORD = re.compile(r"\w{3,}")
_EVERYWHERE = re.compile(
    r"(?:about|after|all|also|and|another|any|are|answer|because|been|before|being|both|but|can|could|did|does|done|"
    r"each|either|else|even|ever|every|few|for|from|get|gives|had|has|have|her|here|him|his|how|however|into|its|"
    r"just|like|made|make|many|may|mean|means|might|more|most|much|must|not|now|off|one|only|other|our|out|over|"
    r"own|part|rather|really|same|say|says|sentence|she|should|since|some|such|text|than|that|the|their|them|"
    r"then|there|these|they|thing|things|this|those|though|through|too|two|under|until|use|used|very|was|way|"
    r"well|were|what|when|where|which|while|who|whole|why|will|with|word|words|would|wrong|you|your)"
)


def locate(
    quote: str, text: str, *, near: int | None = None, context: str | None = None, threshold: float = 0.75
) -> Match | None:
    """Find `quote` in `text`.

    Tried in turn, the first that finds anything decides: whole words, verbatim or but for case, white space and
    typography; but for punctuation and accents; a verbatim part of a longer word or number, if the quotation has at
    least 4 characters and is no number; the parts around an ellipsis, at most 400 characters apart; but for lost
    spaces; a misquotation with at least the similarity `threshold`.

    Among several occurrences, the one written in the same case is preferred, unless `near` (a position in `text`) or
    `context` (what the critique says around the quotation, the quotation included) speaks for another: its words
    stand close by, or it says 'the second "it"' or 'ends with "and"'. Nothing to choose by: the first.
    """
    candidates = occurrences(quote, text, threshold)
    if not candidates:
        return None
    scores = _scores(candidates, quote, text, near, context)
    best = max(scores)
    first_of_the_best = next(i for i, score in enumerate(scores) if best - score < _UNDECIDED)
    return _unsure(candidates[first_of_the_best], best, scores)


def locate_all(
    quotes: Sequence[str], text: str, *, contexts: Sequence[str | None] | None = None, threshold: float = 0.75
) -> list[Match | None]:
    """Find the quotations of one critique together; contexts[i], where given, belongs to quotes[i].

    As `locate`, and where a quotation occurs more than once: no occurrence is used twice while another is free,
    none that overlaps another quotation is used while another does not, and critics go through a text from front to
    back, so the nearest occurrence after the previous quotation's is preferred.
    """
    given = contexts if contexts is not None else [None] * len(quotes)
    candidates = [occurrences(quote, text, threshold) for quote in quotes]
    scores = [
        _scores(places, quote, text, None, context)
        for places, quote, context in zip(candidates, quotes, given, strict=True)
    ]
    branches = [_most_likely(*pair) for pair in zip(candidates, scores, strict=True)]
    located = [i for i, places in enumerate(candidates) if places]
    paths: list[tuple[float, list[Match]]] = [(0.0, [])]
    for i in located:
        longer = [
            (total + score + _order(place, path, len(text)), [*path, place])
            for total, path in paths
            for place, score in branches[i]
        ]
        paths = sorted(longer, key=lambda scored: -scored[0])[:_BEAM]
    chosen = dict(zip(located, paths[0][1], strict=True))
    return [_settled(i, chosen, branches[i], len(text)) if i in chosen else None for i in range(len(quotes))]


def _scores(candidates: list[Match], quote: str, text: str, near: int | None, context: str | None) -> list[float]:
    """What speaks for each candidate by itself; see `locate`."""
    scores = [float(place.how == "exact") for place in candidates]
    if len(candidates) < 2:
        return scores
    if near is not None:
        distances = [min(abs(place.start - near), abs(place.end - near)) for place in candidates]
        scores = [score - _NEAR * distance / len(text) for score, distance in zip(scores, distances, strict=True)]
        scores[distances.index(min(distances))] += _NEAR
    if context:
        neighbours = _neighbourhood(candidates, quote, text, context)
        scores = [score + words for score, words in zip(scores, neighbours, strict=True)]
        counted = _counted(quote, context)
        if counted is not None and counted < len(candidates):
            scores[counted] += _COUNTED
    return scores


def _neighbourhood(candidates: list[Match], quote: str, text: str, context: str) -> list[float]:
    """For each candidate, the words of the context that stand close to it; rare words say more."""
    low = text.lower()
    words = set(_CONTEXT_WORD.findall(context.lower())) - set(_CONTEXT_WORD.findall(quote.lower()))
    totals = [0.0] * len(candidates)
    for word in sorted(words):  # a sum depends on its order
        if _EVERYWHERE.fullmatch(word):
            continue
        positions = [match.start() for match in re.finditer(rf"\b{re.escape(word)}\b", low)]
        for i, place in enumerate(candidates):
            nearest = bisect_left(positions, place.start)
            gaps = [max(place.start - at - len(word), at - place.end, 0) for at in positions[max(0, nearest - 1) :][:2]]
            if gaps:
                totals[i] += max(0.0, 1 - min(gaps) / _CLOSE) / len(positions)
    return [round(2 * total) / 2 for total in totals]  # less than half a word's say is noise


def _counted(quote: str, context: str) -> int | None:
    """The index of the occurrence that the context names by number or place, -1 for the last."""
    for ordinal in _ORDINAL.finditer(context):
        rest = context[ordinal.end() :]
        if _OCCURRENCE.match(rest) or folded(rest.lstrip(_OPENING)).text.startswith(folded(quote).text):
            return _ORDINALS[ordinal[1].lower()]
    if _AT_THE_END.search(context):
        return -1
    return 0 if _AT_THE_START.search(context) else None


def _order(place: Match, path: Sequence[Match], length: int) -> float:
    """What speaks against a place, given the places of the quotations before it."""
    score = 0.0
    if any((place.start, place.end) == (other.start, other.end) for other in path):
        score += _REUSED
    elif any(place.start < other.end and other.start < place.end for other in path):
        score += _OVERLAPPING
    previous = path[-1].start if path else 0
    return score + (_BACKWARDS if place.start < previous else _FORWARD * (place.start - previous) / length)


def _most_likely(candidates: list[Match], scores: list[float]) -> list[tuple[Match, float]]:
    """The best-scored candidates, the earlier ones where scores are equal; in text order."""
    ranked = sorted(zip(candidates, scores, strict=True), key=lambda branch: -branch[1])
    return sorted(ranked[:_BRANCHES], key=lambda branch: branch[0].start)


def _settled(i: int, chosen: dict[int, Match], branches: list[tuple[Match, float]], length: int) -> Match:
    """The chosen place of quotation i, as sure as its lead over the other branches, all else being as chosen."""
    totals = {}
    for place, score in branches:
        path: list[Match] = []
        for j, other in chosen.items():
            path.append(place if j == i else other)
            score += _order(path[-1], path[:-1], length)
        totals[place] = score
    return _unsure(chosen[i], totals[chosen[i]], list(totals.values()))


def _unsure(chosen: Match, score: float, scores: list[float]) -> Match:
    """Confidence is shared among the places that were as good as the chosen one."""
    as_good = sum(score - other < _UNDECIDED for other in scores)
    return replace(chosen, confidence=chosen.confidence / as_good)
