"""What a source of targets proposes: words of a comment, and the places in the completion that they may mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from text2grad.schema import Range

Source = Literal[
    "quotation", "value", "part", "kind", "structure", "behaviour", "name", "mention", "paraphrase", "whole"
]


@dataclass(frozen=True)
class Proposal:
    """Places that the words `phrase` of the comment mean, all of them, with the probability that this is right."""

    source: Source
    phrase: Range
    places: tuple[Range, ...]
    confidence: float


def overlap(one: Range, other: Range) -> bool:
    """Whether two ranges share a character."""
    return one[0] < other[1] and other[0] < one[1]


def contains(outer: Range, inner: Range) -> bool:
    """Whether `inner` lies within `outer`."""
    return outer[0] <= inner[0] and inner[1] <= outer[1]
