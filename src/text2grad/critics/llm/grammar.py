"""Grammars that leave a model only replies of the right form, with quotations that are in the text they quote.

The reply comes in two parts, because the second depends on the first: reasoning and critique, then spans whose quotes
are whole words of the answer and whose phrases are whole words of the critique just written, and omissions.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from text2grad.critics.llm.reply import SEVERITIES

# A word; a character of a script without spaces; a long word in pieces, so that each fits into a quotation.
CHUNK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]{1,40}|\s|[^\w\s]")
_LEAST_SENTENCE = 24  # characters; a small model is otherwise content with two words of its instructions
_QUOTE_START = r"[^ \\]"  # neither white space nor an escape
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
REASONING: {_prose(limits.reasoning, least=_LEAST_SENTENCE)}
CRITIQUE: {_prose(limits.critique, least=_LEAST_SENTENCE)}
"""


def closing_grammar(answer: str, critique: str, limits: Limits) -> str:
    """`, "spans": [...], "omissions": [...]}`, with at least one span where the answer has anything to quote."""
    spans = _some("span", limits.spans) if quotable(answer) else ""
    missing = f"[{_some('missing', limits.omissions)}]" if limits.omissions else ""
    rules = [f'start: ", \\"spans\\": [" {spans} "], \\"omissions\\": [" {missing} "]}}"']
    if spans:
        rules += [
            r'span: "{\"quote\": \"" QUOTE "\", \"phrase\": \"" PHRASE "\", \"label\": \"" LABEL '
            r'"\", \"severity\": \"" SEVERITY "\"}"',
            f"QUOTE: {_part_of(answer, limits.quote)}",
            'LABEL: "good" | "poor"',
        ]
    if missing:
        rules += [
            r'missing: "{\"text\": \"" TEXT "\", \"phrase\": \"" PHRASE "\", \"severity\": \"" SEVERITY "\"}"',
            f"TEXT: {_prose(limits.omission)}",
        ]
    if spans or missing:
        rules += [
            f"PHRASE: {_part_of(critique, limits.critique)}",
            "SEVERITY: " + " | ".join(f'"{word}"' for word in SEVERITIES),
        ]
    return "\n".join(rules) + "\n"


def quotable(text: str) -> bool:
    """Whether a quotation can begin anywhere in it."""
    return any(re.match(_QUOTE_START, chunk) for chunk in _chunks(text))


def _some(item: str, most: int) -> str:
    """From one to `most` of the item."""
    return f'{item} (", " {item}){{0,{most - 1}}}' if most > 1 else item


def _prose(most: int, least: int = 1) -> str:
    """A letter first: a small model is otherwise content with a row of dots."""
    return rf"/[A-Za-z][^{_SPECIAL}]{{{min(least, most) - 1},{most - 1}}}/"


def _part_of(text: str, most: int) -> str:
    """Neighbouring words and marks of the text, as JSON holds them."""
    chunks = json.dumps(_chunks(text))
    return f'%regex {{ "substring_chunks": {chunks} }} & /{_QUOTE_START}(?s:.{{0,{most - 1}}})/'


def _chunks(text: str) -> list[str]:
    """Words, spaces and marks, each escaped as a whole: a quotation can never split an escape."""
    return [json.dumps(chunk, ensure_ascii=False)[1:-1] for chunk in CHUNK.findall(text)]
