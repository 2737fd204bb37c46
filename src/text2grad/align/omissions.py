"""Whether a completion really lacks what a comment says is missing."""

from __future__ import annotations

import re

from text2grad.align.learned.roles import content_keys, parse_mentions
from text2grad.schema import Range
from text2grad.text.whitespace import part_key, split_parts

_MIN_SHARE = 0.8  # of the content words that a completion has which has the thing
_MAX_GAP = 60  # characters between the words of one thing
# words that say how something should be told, not what
_VAGUE = frozenset(
    part_key(word)
    for word in [
        "something",
        "anything",
        "detail",
        "details",
        "information",
        "info",
        "mention",
        "example",
        "examples",
        "more",
        "further",
        "context",
        "part",
        "fact",
        "facts",
        "any",
        "kind",
        "sort",
        "way",
        "thing",
        "things",
        "point",
        "points",
        "section",
        "line",
        "sentence",
        "word",
        "words",
        "note",
        "explanation",
        "about",
        "regarding",
        "actual",
        "exact",
        "specific",
        "proper",
        "clear",
        "short",
        "brief",
        "also",
        "bit",
        "little",
    ]
)


def is_present(missing: str, completion: str) -> bool:
    """Whether the completion has what these words name: nearly all of their content words, close together."""
    keys = content_keys(parse_mentions(missing)) - _VAGUE
    if not keys:
        keys = {part_key(part) for part in split_parts(missing)} - _VAGUE
        keys = {key for key in keys if len(key) > 3}
    if not keys:
        return False
    places: dict[str, list[int]] = {}
    for match in re.finditer(r"\S+", completion):
        for part in split_parts(match[0]):
            places.setdefault(part_key(part), []).append(match.start())
    found = [key for key in keys if key in places]
    if len(found) < _MIN_SHARE * len(keys):
        return False
    first = min(found, key=lambda key: len(places[key]))
    return any(
        all(min(abs(other - start) for other in places[key]) <= _MAX_GAP * len(found) for key in found)
        for start in places[first]
    )


def omission_text(comment: str, missing: Range) -> str:
    """Return the words of the comment that name what is missing, without white space and marks around them."""
    return comment[slice(*missing)].strip(" \t\n.,;:!?\"'“”")
