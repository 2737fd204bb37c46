"""Grammars of an LLM critic's reply: always of the right format, with quotes that are in the text they quote.

The reply has two stages, because the second depends on the first: reasoning and critique, then spans whose quotes are
whole words of the completion and whose phrases are whole words of the critique just written, and omissions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from llguidance import LLTokenizer

from text2grad.critics.llm.reply import SEVERITIES
from text2grad.rollout.constrained import GrammarGuide
from text2grad.rollout.grammar import QUOTE_CHUNK, quote_rule, repeat_rule

_MIN_SENTENCE = 24  # characters; a small model otherwise copies two words of its instructions
_QUOTE_START = r"[^ \\]"  # neither white space nor an escape
_SPECIAL = r'"\\\x00-\x1f\x7f'  # what JSON escapes


@dataclass(frozen=True)
class ReplyLimits:
    """Maximum lengths in characters, and maximum numbers, of the parts of a reply."""

    reasoning: int = 300
    critique: int = 300
    quote: int = 120
    omission: int = 100
    spans: int = 3
    omissions: int = 1


def reply_guide(vocabulary: LLTokenizer, completions: Sequence[str], limits: ReplyLimits) -> GrammarGuide:
    """Return the guide of a batch of replies about these completions."""

    def second_stage(i: int, first_stage: str) -> str:
        return quotes_grammar(completions[i], json.loads(first_stage + "}")["critique"], limits)

    return GrammarGuide(vocabulary, [lambda: critique_grammar(limits)] * len(completions), second_stage)


def critique_grammar(limits: ReplyLimits) -> str:
    """Return the grammar of `{"reasoning": ..., "critique": ...`: at least a sentence each, on one line, unquoted."""
    return rf"""
start: "{{\"reasoning\": \"" REASONING "\", \"critique\": \"" CRITIQUE "\""
REASONING: {_prose(limits.reasoning, min_length=_MIN_SENTENCE)}
CRITIQUE: {_prose(limits.critique, min_length=_MIN_SENTENCE)}
"""


def quotes_grammar(completion: str, critique: str, limits: ReplyLimits) -> str:
    """Return the grammar of `, "spans": [...], "omissions": [...]}`, with a span if anything can be quoted."""
    spans = repeat_rule("span", ", ", limits.spans) if is_quotable(completion) else ""
    omissions = f"[{repeat_rule('omission', ', ', limits.omissions)}]" if limits.omissions else ""
    rules = [f'start: ", \\"spans\\": [" {spans} "], \\"omissions\\": [" {omissions} "]}}"']
    if spans:
        rules += [
            r'span: "{\"quote\": \"" QUOTE "\", \"phrase\": \"" PHRASE "\", \"label\": \"" LABEL '
            r'"\", \"severity\": \"" SEVERITY "\"}"',
            f"QUOTE: {quote_rule(_chunks(completion), _QUOTE_START, limits.quote)}",
            'LABEL: "good" | "poor"',
        ]
    if omissions:
        rules += [
            r'omission: "{\"text\": \"" TEXT "\", \"phrase\": \"" PHRASE "\", \"severity\": \"" SEVERITY "\"}"',
            f"TEXT: {_prose(limits.omission)}",
        ]
    if spans or omissions:
        rules += [
            f"PHRASE: {quote_rule(_chunks(critique), _QUOTE_START, limits.critique)}",
            "SEVERITY: " + " | ".join(f'"{word}"' for word in SEVERITIES),
        ]
    return "\n".join(rules) + "\n"


def is_quotable(text: str) -> bool:
    """Return whether a quote can start anywhere in the text."""
    return any(re.match(_QUOTE_START, chunk) for chunk in _chunks(text))


def _prose(max_length: int, min_length: int = 1) -> str:
    """A letter first: a small model otherwise writes a row of dots."""
    return rf"/[A-Za-z][^{_SPECIAL}]{{{min(min_length, max_length) - 1},{max_length - 1}}}/"


def _chunks(text: str) -> list[str]:
    """Words, spaces and marks, each escaped as a whole: a quote can never split an escape."""
    return [json.dumps(chunk, ensure_ascii=False)[1:-1] for chunk in QUOTE_CHUNK.findall(text)]
