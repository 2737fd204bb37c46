"""How much of an answer a clause says to be so: "Hardly anything is right", "None of it is true", "Nothing is wrong"."""

# ruff: noqa: E501  one pattern per line

from __future__ import annotations

import re

from text2grad.align.stance.stance_features import find_roles, split_tokens
from text2grad.schema import Label

_ALL = r"(?:it|this|that|the\s+(?:whole\s+)?(?:thing|answer|summary|text|response|letter|story|code|e?-?mail|article|post|facts?|details?|numbers|information))"
_THINGS = r"(?:the|these|those|its|your)\s+[\w'’-]+"
_LITTLE = (
    rf"(?:(?:hardly|barely|scarcely)\s+(?:anything|any(?:\s+of\s+{_ALL})?|a\s+(?:word|thing|sentence|fact|line))|(?:almost\s+|next\s+to\s+|absolutely\s+|practically\s+)?"
    rf"(?:nothing|none\s+of\s+(?:{_ALL}|{_THINGS}))|(?:very\s+|so\s+)?little\s+(?:of\s+{_ALL}|here|in\s+(?:it|here|this))|not\s+much(?:\s+of\s+{_ALL})?|not\s+(?:a|one|a\s+single)\s+(?:word|thing|sentence|fact|line))"
)
_SCARCE = re.compile(
    rf"\W*(?:(?:but|and|sadly|unfortunately|otherwise|else|also|so|there['’]s|there\s+is)\b,?\s+)*{_LITTLE}(?:\s+(?:here|else|in\s+(?:it|here|this|there|{_ALL})|that|about\s+(?:it|this)))*"
    r"\s+(?P<said>(?:is|are|was|were|match(?:es)?|works?|adds?\s+up|makes?\s+sense|checks?\s+out|holds?\s+up|fits?|convinces?)\b(?:\s+[\w'’-]+){0,4})\W*",
    re.IGNORECASE,
)
_NO_VERDICT = re.compile(r"\b(?:than|as|like|more|less|could|can|would|should|about|on|of)\b|n['’]t\b", re.IGNORECASE)
_OF_THINGS = re.compile(rf"\bnone\s+of\s+(?!{_ALL}\b){_THINGS}", re.IGNORECASE)
_CUES = ("hardly", "barely", "scarcely", "nothing", "none", "little", "not much", "not a", "not one")


def is_of_things(text: str) -> bool:
    """Whether a clause says so of some things rather than of all of the answer: "None of the dates is right"."""
    return _OF_THINGS.search(text) is not None


def find_scarce(text: str) -> Label | None:
    """Return how a clause judges the answer that says that little or nothing of it is good, or bad; None for others."""
    lower = text.lower()
    if not any(cue in lower for cue in _CUES):
        return None
    match = _SCARCE.fullmatch(text)
    if match is None or _NO_VERDICT.search(match["said"]):
        return None
    letters = set(find_roles(split_tokens(match["said"]))[0])
    is_state = match["said"].split()[0].lower() in ("is", "are", "was", "were")
    if not is_state or letters & set("PF"):
        return None if letters & set("BSN") else "poor"
    return "good" if letters & set("BL") and "N" not in letters else None
