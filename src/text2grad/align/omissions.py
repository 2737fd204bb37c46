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

_GO = (
    r"(?:remove|delete|drop|cut|omit|erase|strike|scrap|ditch|eliminate|skip|lose|get\s+rid\s+of"
    r"|(?:take|leave|cut)\s+(?:\w+\s+){0,4}?out)\b(?!.*\b(?:and|but)\s+(?:add|include|mention|give|put|say|write)\b)"
    r"(?!.*\b(?:forgets?|forgot|missing|never\s+(?:mentioned|said))\b)"
)
_GONE = r"(?:removed|deleted|dropped|cut|omitted|erased|struck|scrapped|eliminated|taken\s+out|left\s+out)\b"
_ORDER = re.compile(
    r"\W*(?:(?:but|and|also|then|so|please|pls|just|kindly|maybe|now|you|we|i|i['’]d|let['’]s|should|could|can|would|must)\s+)*"
    rf"{_GO}",
    re.IGNORECASE | re.DOTALL,
)
_SHOULD_GO = re.compile(
    rf"\b(?:should|must|could|can|needs?\s+to|ha(?:s|ve)\s+to|ought\s+to)\s+(?:really\s+|just\s+)?be\s+{_GONE}"
    r"|\b(?:should|could|might|must)\s+(?:\w+ly\s+|well\s+)?have\s+(?:left\s+(?:out\s+\w|(?:[\w'’-]+\s+){1,5}out\b)|(?:omitted|skipped|dropped|deleted|removed|avoided)\s+\w)"
    r"|\b(?:could|can)\s+(?:easily\s+|well\s+|have\s+)?(?:do|done|live|lived)\s+without\s+\w",
    re.IGNORECASE,
)
_PROHIBITION = re.compile(
    r"\W*(?:please\s+)?(?:do\s+not|don['’]?t|never|stop|avoid|no\s+need\s+to)\s+(?:\w+ing|tell|say|mention|use|add|include"
    r"|call|write|put|claim|recommend|suggest|promise|ask|make|let|give|explain|describe|repeat|list|go\s+into|retell|summari[sz]e)\b"
    r"|\W*(?:but\s+)?(?:please,?\s+no|no(?=[^.;!?]{2,60},?\s+please\b))\s+(?:more\s+)?\w",
    re.IGNORECASE,
)
_NOT_ASKED = re.compile(
    r"\b(?:(?:no[\s-]?one|nobody)\s+(?:(?:ever|even|has|had)\s+)*asked\b"
    r"|who\s+(?:ever\s+)?asked\b(?:\s+(?:for|about)\b)?[^,.;]*\?"
    r"|\b(?:was|were|is|are)(?:n['’]t|\s+not|\s+never)\s+(?:(?:even|really|ever)\s+)*(?:asked|requested|part\s+of\s+(?:the|my|our)\s+"
    r"(?:question|task|assignment|prompt|brief|request))\b(?!\s+about)"
    r"|not\s+(?:(?:really|quite|exactly|at\s+all)\s+)?what\s+(?:was|(?:i|we|you|they)(?:\s+was|\s+were|\s+had)?)\s+asked\b)",
    re.IGNORECASE,
)
_OUT_OF_PLACE = re.compile(
    r"\b(?:(?:do|does|did)(?:n['’]t|\s+not)\s+(?:really\s+)?belong|ha(?:s|ve)\s+(?:no|little)\s+(?:place|business)"
    r"|(?:is|are|feels?|seems?)\s+(?:so\s+|rather\s+|quite\s+|a\s+bit\s+)?out\s+of\s+place|(?<!there\s)(?:is|are)\s+no\s+place\s+for)\b",
    re.IGNORECASE,
)
_SHOULD_CHANGE = re.compile(
    r"\b(?:should|must|needs?\s+to|ha(?:s|ve)\s+to|ought\s+to)\s+(?:really\s+|just\s+|all\s+)?be\s+(?:changed|fixed|corrected"
    r"|shortened|rewritten|reworded|rephrased|moved|merged|split|trimmed|stripped|renamed|replaced|simplified|softened"
    r"|reversed|swapped|avoided|condensed|toned\s+down|rounded|halved)\b",
    re.IGNORECASE,
)
_IN_ADDITION = re.compile(r"\b(?:too|also|as\s+well)\b", re.IGNORECASE)  # "It should be fixed to the wall, too"


def is_removal(comment: str, start: int, end: int) -> bool:
    """Whether comment[start:end] asks to remove something."""
    return bool(_ORDER.match(comment, start, end) or _SHOULD_GO.search(comment, start, end))


def is_unwanted(comment: str, start: int, end: int) -> bool:
    """Whether comment[start:end] does not want something: it is there, not missing. "Nobody asked for a receipt."."""
    if _PROHIBITION.match(comment, start, end) or _OUT_OF_PLACE.search(comment, start, end):
        return True
    return (
        any(cue in comment for cue in ("asked", "requested", "part of"))
        and _NOT_ASKED.search(comment, start, end) is not None
    )


def asks_to_change(comment: str, start: int, end: int) -> bool:
    """Whether comment[start:end] asks to change what there is: "The trailing space should be stripped."."""
    return bool(_SHOULD_CHANGE.search(comment, start, end)) and not _IN_ADDITION.search(comment, start, end)


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
