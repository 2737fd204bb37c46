"""What a request to remove something speaks of: the words that should go, what they are said of, and their kind."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from text2grad.text.lexicon import FUNCTION_WORDS, word_set
from text2grad.text.whitespace import part_key, split_parts

_KINDS = {  # what a request speaks of
    "first name": r"\b(?:first|given|christian|fore)[ -]?names?\b|\bfull names?\b|\bmiddle names?\b",
    "name": r"\bnames?\b|\bnamed\b|\bcalled\b",
    "age": r"\bage[sd]?\b|\bhow old\b",
    "position": r"\b(?:position|job|role|title|occupation|profession|post|rank|status|career|work)s?\b"
    r"|\b(?:manag|play)er",
    "nationality": r"\bnationalit|\bcountry\b|\bethnic|\borigin",
    "place": r"\b(?:location|place|city|county|country|town|venue|area|region|street|state)s?\b|\bwhere\b|\blocated\b",
    "time": r"\b(?:date|day|year|month|week|time|season|period|timeframe)s?\b|\bwhen\b",
    "duration": r"\blength\b|\bhow long\b|\bduration\b|\bcontract\b|\bsentence\b|\bdeal\b",
    "number": r"\b(?:number|amount|percent\w*|cost|price|fee|value|sum|figure|size|quantity|total|distance)s?\b"
    r"|\bhow (?:many|much)\b",
    "score": r"\bscores?\b|\bresults?\b",
    "organisation": r"\b(?:team|club|party|company|organi[sz]ation|council|group|league|tournament|competition"
    r"|side)s?\b",
    "speaker": r"\bwho\b|\bsa(?:ys|id|ying)\b|\bsource\b",
    "description": r"\b(?:being|type|kind|adjective|descri\w+)\b",
}
_KIND_PATTERNS = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in _KINDS.items()}
_KIND_WORDS = word_set("""
    first given full middle name names named age ages aged position job role title occupation profession nationality
    country location place city county town venue date day year month time length duration number amount score result
    team club party being fact information type kind part person man woman player player's
    """)
_BEING = re.compile(r"\b(?:being|is|was|are|were|as|having)\b", re.IGNORECASE)
_OF = re.compile(r"\b(?:of|for|about)\b", re.IGNORECASE)
_POSSESSIVE = re.compile(r"(?:['’]s|s['’])\s", re.IGNORECASE)
_QUOTED = re.compile(r"[\"“”‘’]")


class Request(NamedTuple):
    """The words of a request, by what they tell.

    head: keys of what should go; anchor: keys of what it is said of ("Koeman" in "Koeman's first name"); kinds: what it
    speaks of. Function words are left out.
    """

    head: frozenset[str]
    anchor: frozenset[str]
    exact: tuple[str, ...]
    kinds: frozenset[str]
    is_quoted: bool


def parse_request(request: str) -> Request:
    """Split a request into what should go and what it is said of."""
    head, anchor = request, ""
    if match := _BEING.search(request):
        anchor, head = request[: match.start()], request[match.end() :]
    elif match := _POSSESSIVE.search(request):
        anchor, head = request[: match.end()], request[match.end() :]
    elif (match := _OF.search(request)) and any(p.search(request[: match.start()]) for p in _KIND_PATTERNS.values()):
        head, anchor = request[: match.start()], request[match.end() :]
    kinds = frozenset(name for name, pattern in _KIND_PATTERNS.items() if pattern.search(request))
    exact = tuple(map(part_key, split_parts(request)))
    return Request(_keys(head), _keys(anchor), exact, kinds, bool(_QUOTED.search(request)))


def _keys(text: str) -> frozenset[str]:
    return frozenset(part_key(part) for part in split_parts(text) if part not in FUNCTION_WORDS)


@lru_cache(maxsize=1)
def kind_keys() -> frozenset[str]:
    """Return the keys of the words that only say what kind of phrase should go."""
    return frozenset(map(part_key, _KIND_WORDS))
