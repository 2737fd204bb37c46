"""The grammar of a written judgement about one answer: always of the right form, quoting only what is there.

Free text is bounded in tokens, quotations too, so a judgement closes within `most_tokens`.
"""

from __future__ import annotations

import json
import re

import numpy as np

from text2grad.critics.llm.grammar import CHUNK
from text2grad.reward_model.critique_format import (
    LINE_BREAKS,
    MAX_OCCURRENCE,
    CritiqueFormat,
    CritiqueLimits,
    quote_json,
)

_QUOTE_START = r'([^\s\\]|\\["\\bu])'  # no white space, which is escaped but for the space
_STRUCTURE = len("Reasoning: Critique: Good: Poor: Missing: nonenonenone") + 5


def grammar(answer: str, layout: CritiqueFormat) -> str:
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
            f"NUMBER: /#[1-{MAX_OCCURRENCE}]/",
        ]
    else:
        rules.append('spans: "none"')
    if limits.omissions:
        rules += [
            f'missing: "none" | {_some("omission", limits.omissions)}',
            r'omission: "\"" TEXT "\""',
            f"TEXT: {_escaped_prose(limits.omission)}",
        ]
    else:
        rules.append('missing: "none"')
    return "\n".join(rules) + "\n"


def most_tokens(answer: str, limits: CritiqueLimits) -> int:
    """What the longest judgement can take, the end token included: a token holds at least one byte.

    A character has at most four bytes; those of quotations are the answer's own. A quotation that begins with an escape
    may be one character longer than its limit.
    """
    quote = _most_bytes(quote_json(answer)[1:-1], limits.quote + 1)
    spans = 2 * limits.spans * (quote + len('""#9; '))
    omissions = limits.omissions * (4 * limits.omission + len('""; '))
    return 4 * (limits.reasoning + limits.critique) + spans + omissions + _STRUCTURE + 1


def _some(item: str, most: int) -> str:
    """From one to `most` of the item."""
    return f'{item} ("; " {item}){{0,{most - 1}}}' if most > 1 else item


def _prose(most: int) -> str:
    return rf"/[^ {LINE_BREAKS}][^{LINE_BREAKS}]{{0,{most - 1}}}/"


def _escaped_prose(most: int) -> str:
    """Prose between quotation marks; an escaped character counts as one."""
    escaped, plain = r'\\["\\]', rf'{LINE_BREAKS}"\\'
    return rf"/({escaped}|[^ {plain}])({escaped}|[^{plain}]){{0,{most - 1}}}/"


def _most_bytes(text: str, width: int) -> int:
    """What the longest stretch of `width` characters takes in UTF-8."""
    ends = np.cumsum([0, *(len(character.encode()) for character in text)])
    return int((ends[width:] - ends[:-width]).max()) if len(text) > width else int(ends[-1])


def _quotable(answer: str) -> list[str]:
    """The chunks as a quotation holds them, each escaped as a whole; empty where no quotation could begin."""
    chunks = [quote_json(chunk)[1:-1] for chunk in CHUNK.findall(answer)]
    return chunks if any(re.match(_QUOTE_START, chunk) for chunk in chunks) else []
