"""Quotations in a comment."""

from __future__ import annotations

import re
from functools import lru_cache

from text2grad.schema import Range

# Opening mark, contents, closing mark. A mark inside a word or after a number is an apostrophe or a unit, and single
# marks contain no further opening mark: "the '90s were 'fun'" quotes "fun" alone.
_QUOTED = re.compile(
    "(?=[`\"“„«「'‘])(?:"  # nearly everywhere, this is all that has to be looked at
    r"```[\w+-]*\n(?P<fence>.+?)\n?```"
    r"|``(?P<ticks>.+?)``"
    r"|`(?P<tick>[^`\n]+)`"
    r'|(?<!\w)"(?P<straight>(?:(?!\n\s*\n)[^"])*)"(?!\w)'
    r"|“(?P<curly>(?:(?!\n\s*\n)[^“”])+)”"
    r"|„(?P<low>(?:(?!\n\s*\n)[^„“”])+)[“”]"
    r"|«(?P<angle>(?:(?!\n\s*\n)[^«»])+)»"
    r"|「(?P<corner>[^「」]+)」"
    r"|(?<!\w)'(?=\S)(?P<single>(?:(?!(?<!\w)')[^\n])*?[^\s'])'(?!\w)"
    r"|(?<!\w)‘(?=\S)(?P<curly_single>(?:(?!‘)[^\n])*?[^\s’])’(?!\w))",
    re.DOTALL,
)


def find_quotations(comment: str) -> list[Range]:
    """Return the ranges of the quotations in a comment, without their marks.

    Marks are "...", “...”, „...“, «...», 「...」, '...' and ‘...’ unless they are apostrophes, and backticks, single,
    double or as a fence. Of nested quotations the outer one counts; an opening mark that is never closed is ignored.
    """
    return list(_find_quotations(comment))


@lru_cache(maxsize=16)  # several who read a comment ask for them
def _find_quotations(comment: str) -> tuple[Range, ...]:
    ranges = [match.span(match.lastgroup or 0) for match in _QUOTED.finditer(comment)]
    return tuple((start, end) for start, end in ranges if comment[start:end].strip())
