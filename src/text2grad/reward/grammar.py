"""The grammar of a written judgement about one answer: always of the right form, quoting only what is there.

Free text is bounded in tokens, quotations too, so a judgement closes within `most_tokens`.
"""

from __future__ import annotations

import json
import re

from text2grad.reward.judgement import CHUNK, quoted
from text2grad.reward.settings import Layout, Limits

_BREAKS = r"\x00-\x1f\x7f-\x9f\u2028\u2029"  # a line must stay one line
_QUOTE_START = r'([^ \\]|\\["\\])'  # no white space, which is escaped but for the space itself
_QUOTES = r'"\\'
_STRUCTURE = len("Reasoning: Critique: Good: Poor: Missing: nonenonenone") + 5


def grammar(answer: str, layout: Layout) -> str:
    """In Lark's notation, as llguidance reads it."""
    limits = layout.limits
    lists = r'"Good: " spans "\nPoor: " spans "\nMissing: " missing'
    prose = (r'"Reasoning: " REASONING "\n" ' if limits.reasoning else "") + '"Critique: " CRITIQUE'
    start = {
        "spans_only": lists,
        "critique_first": rf'{prose} "\n" {lists}',
        "spans_first": rf'{lists} "\n" {prose}',
    }[layout.order]
    rules = [f"start: {start}"]
    if layout.order != "spans_only":
        rules.append(f"CRITIQUE: {_prose(limits.critique)}")
        if limits.reasoning:
            rules.append(f"REASONING: {_prose(limits.reasoning)}")
    chunks = _quotable(answer)
    if chunks:
        part = f'%regex {{ "substring_chunks": {json.dumps(chunks)} }}'
        rules += [
            f'spans: "none" | {_some("span", limits.spans)}',
            r'span: "\"" QUOTE "\"" NUMBER?',
            f"QUOTE: {part} & /{_QUOTE_START}(?s:.{{0,{limits.quote - 1}}})/",
            "NUMBER: /#[1-9]/",
        ]
    else:
        rules.append('spans: "none"')
    if limits.omissions:
        rules += [
            f'missing: "none" | {_some("omission", limits.omissions)}',
            r'omission: "\"" TEXT "\""',
            f"TEXT: {_prose(limits.omission, but=_QUOTES)}",
        ]
    else:
        rules.append('missing: "none"')
    return "\n".join(rules) + "\n"


def most_tokens(answer: str, limits: Limits) -> int:
    """What the longest judgement can take, the end token included: a token holds at least one byte.

    A character has at most four bytes; those of quotations are the answer's own.
    """
    widest = max((len(character.encode()) for character in answer), default=1)
    spans = 2 * limits.spans * (widest * limits.quote + len('""#9; '))
    omissions = limits.omissions * (4 * limits.omission + len('""; '))
    return 4 * (limits.reasoning + limits.critique) + spans + omissions + _STRUCTURE + 1


def _some(item: str, most: int) -> str:
    """From one to `most` of the item."""
    return f'{item} ("; " {item}){{0,{most - 1}}}' if most > 1 else item


def _prose(most: int, but: str = "") -> str:
    return rf"/[^ {_BREAKS}{but}][^{_BREAKS}{but}]{{0,{most - 1}}}/"


def _quotable(answer: str) -> list[str]:
    """The chunks as a quotation holds them, each escaped as a whole; empty where no quotation could begin."""
    chunks = [quoted(chunk)[1:-1] for chunk in CHUNK.findall(answer)]
    return chunks if any(re.match(_QUOTE_START, chunk) for chunk in chunks) else []
