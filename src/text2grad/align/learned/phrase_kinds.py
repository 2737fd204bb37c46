"""Which kind of phrase a run of words is, by its spelling and its neighbours: a name, an age, a time, ..."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate

from text2grad.text.lexicon import CALENDAR_WORDS, PREPOSITIONS, word_set
from text2grad.text.whitespace import WhitespaceWord, WordKind

_AGE = re.compile(
    r"\b\d+[- ]years?[- ]old\b|\b\w+-year-old\b|\baged \d+\b|\bin (?:his|her|their) \w+s\b", re.IGNORECASE
)
_SCORE = re.compile(r"\b\d+[-–]\d+\b")
_TIME = re.compile(
    rf"\b(?:{'|'.join(sorted(CALENDAR_WORDS - {'may', 'march'}))}|(?:1[5-9]|20)\d\d|today|yesterday|tomorrow|tonight"
    r"|(?:last|next|this|past|previous|following) (?:\w+ )?"
    r"(?:year|month|week|season|summer|winter|spring|autumn|night|weekend)\w*)\b"
    r"|\b(?:May|March)\b",
)
_DURATION = re.compile(r"\b[\w.]+[- ](?:year|month|week|day|hour|minute|season|game|match)s?\b", re.IGNORECASE)
_MEASURES = {"age": _AGE, "score": _SCORE, "time": _TIME, "duration": _DURATION}
_MEASURE_WORD = re.compile(
    r"\d|year|aged|\b(?:his|her|their|today|yesterday|tomorrow|tonight|May|March)\b|season|month|week|day|hour|minute|game"
    rf"|match|night|summer|winter|spring|autumn|{'|'.join(sorted(CALENDAR_WORDS - {'may', 'march'}))}"
)  # one of these is in every measure
_NATIONALITY = re.compile(
    r"[A-Z]\w+(?:ish|ian|ean|ese|can|lsh)|French|German|Dutch|Scot\w*|Greek|Swiss|Thai|Iraqi|Israeli|Pakistani|Czech|Spaniard"
)
_PLACE_PREPOSITIONS = word_set("in at near of on from outside across to around off")


def phrase_kinds(words: Sequence[WhitespaceWord], candidates: Sequence[tuple[int, int]]) -> list[frozenset[str]]:
    """Return which kinds of phrase each run of words is, by its spelling and its neighbours."""
    texts = [word.text for word in words]
    capital = [word.is_capitalized for word in words]
    joins = [is_capital and not text.endswith(",") for is_capital, text in zip(capital, texts, strict=True)]
    capitals, lower, measures, numbers = (
        list(accumulate(flags, initial=0))
        for flags in (
            capital,
            [word.is_content and not is_capital for word, is_capital in zip(words, capital, strict=True)],
            map(_may_measure, texts),
            [word.kind is WordKind.NUMBER for word in words],
        )
    )
    found = []
    longest = dict(sorted(candidates))  # of the runs with one start, the last one in order
    measured = {
        first: _measures(" ".join(texts[first:last]), _MEASURES)
        for first, last in longest.items()
        if measures[last] > measures[first]
    }
    for first, last in candidates:
        length, final = last - first, texts[last - 1]
        kinds = set()
        follows_name = last < len(words) and capital[last] and not final.endswith(",")
        before_capital = first > 0 and joins[first - 1]
        has_capitals = capitals[last] - capitals[first]
        if has_capitals == length:
            kinds.add("names" if length > 1 else "one name")
            if follows_name and not final.endswith(("'s", "’s")):
                kinds |= {"first name", "start of a name after a name" if before_capital else "start of a name"}
            if before_capital:
                kinds.add("end of a name")
        elif follows_name and lower[last] > lower[first]:
            if lower[last] - lower[first] == length:
                kinds.add("words before a name")
            if has_capitals:
                kinds.add("title before a name")
        bare = texts[first].lower()
        if bare in _PLACE_PREPOSITIONS and capitals[last] > capitals[first + 1]:
            kinds.add(f"{bare} Name")
        elif bare in PREPOSITIONS:
            kinds.add("prepositional phrase")
        if measures[last] > measures[first] and measured[first]:  # a longer run has what a shorter one has
            kinds.update(_measures(" ".join(texts[first:last]), measured[first]))
        if length == 1 and _NATIONALITY.match(final):
            kinds.add("nationality")
        if length == 1 and final.endswith(("'s", "’s")):
            kinds.add("possessive")
        if numbers[last] > numbers[first]:
            kinds.add("number" if length <= 2 else "with a number")
        found.append(frozenset(kinds))
    return found


@lru_cache(maxsize=1 << 14)
def _may_measure(word: str) -> bool:
    return _MEASURE_WORD.search(word) is not None or _MEASURE_WORD.search(word.lower()) is not None


def _measures(text: str, possible: Iterable[str]) -> list[str]:
    return [kind for kind in possible if _MEASURES[kind].search(text)]
