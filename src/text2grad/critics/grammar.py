"""Grammars that leave a model only replies of the right form, with quotations that are in the text they quote.

The reply comes in two parts, because the second depends on the first: reasoning and critique, then spans whose quotes
are whole words of the answer and whose phrases are whole words of the critique just written, and omissions.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from text2grad.critics.reply import SEVERITIES

_CHUNK = re.compile(r"\w+|\s+|[^\w\s]")
_SPECIAL = r'"\\\x00-\x1f\x7f'  # what JSON escapes


@dataclass(frozen=True)
class Limits:
    """The most that each part may hold; lengths count characters. They bound how long a reply can get."""

    reasoning: int = 300
    critique: int = 300
    quote: int = 120
    omission: int = 100
    spans: int = 3
    omissions: int = 1


def opening_grammar(limits: Limits) -> str:
    """`{"reasoning": ..., "critique": ...`: prose without line breaks or quotation marks, at least some words of it."""
    return rf"""
start: "{{\"reasoning\": \"" REASONING "\", \"critique\": \"" CRITIQUE "\""
REASONING: {_prose(limits.reasoning)}
CRITIQUE: {_prose(limits.critique)}
"""


def closing_grammar(answer: str, critique: str, limits: Limits) -> str:
    """`, "spans": [...], "omissions": [...]}`, with at least one span where the answer has anything to quote."""
    quotable = bool(answer.strip())
    spans = f'SPAN (", " SPAN){{0,{limits.spans - 1}}}' if limits.spans > 1 else "SPAN"
    missing = f'[MISSING (", " MISSING){{0,{limits.omissions - 1}}}]' if limits.omissions else ""
    start = f'", \\"spans\\": [" {spans if quotable else ""} "], \\"omissions\\": [" {missing} "]}}"'
    rules = [f"start: {start}".replace("SPAN", "span").replace("MISSING", "missing")]
    if quotable:
        rules.append(
            r'span: "{\"quote\": \"" QUOTE "\", \"phrase\": \"" PHRASE "\", \"label\": \"" LABEL '
            r'"\", \"severity\": \"" SEVERITY "\"}"'
        )
        rules += [f"QUOTE: {_part_of(answer, limits.quote)}", 'LABEL: "good" | "poor"']
    if limits.omissions:
        rules.append(
            r'missing: "{\"text\": \"" TEXT "\", \"phrase\": \"" PHRASE "\", \"severity\": \"" SEVERITY "\"}"'
        )
        rules.append(f"TEXT: {_prose(limits.omission)}")
    if quotable or limits.omissions:
        rules.append(f"PHRASE: {_part_of(critique, limits.critique)}")
        rules.append("SEVERITY: " + " | ".join(f'"{word}"' for word in SEVERITIES))
    return "\n".join(rules) + "\n"


def _prose(most: int) -> str:
    """A letter first: a small model is otherwise content with a row of dots."""
    return rf"/[A-Za-z][^{_SPECIAL}]{{0,{most - 1}}}/"


def _part_of(text: str, most: int) -> str:
    """Neighbouring words and marks of the text as JSON holds them, from the first letter of a word on."""
    chunks = [json.dumps(chunk, ensure_ascii=False)[1:-1] for chunk in _CHUNK.findall(text)]
    return f'%regex {{ "substring_chunks": {json.dumps(chunks)} }} & /[^ ](?s:.{{0,{max(most - 1, 0)}}})/'
