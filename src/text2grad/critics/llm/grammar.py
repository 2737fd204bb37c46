"""Grammars of an LLM critic's reply: always of the right format, with quotes that are in the text they quote.

The reply has two stages, because the second depends on the first: reasoning and critique, then spans whose quotes are
whole words of the completion and whose phrases are whole words of the critique just written, with what should stand
there instead, and omissions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Annotated

from llguidance import LLTokenizer
from pydantic import Field, NonNegativeInt, PositiveInt

from text2grad.critics.llm.reply import SEVERITIES
from text2grad.rollout.constrained import GrammarGuide
from text2grad.rollout.grammar import QUOTE_CHUNK, quote_rule, repeat_rule
from text2grad.settings import Settings

_MIN_SENTENCE = 24  # characters; a small model otherwise copies two words of its instructions
_QUOTE_START = r"[^ \\]"  # neither white space nor an escape
_SPECIAL = r'"\\\x00-\x1f\x7f'  # what JSON escapes


class ReplyLimits(Settings):
    """Maximum lengths, in characters, and numbers of the parts of a reply."""

    reasoning_length: PositiveInt = 300
    critique_length: PositiveInt = 300
    quote_length: Annotated[int, Field(ge=40)] = 120
    instead_length: PositiveInt = 60
    omission_length: PositiveInt = 100
    max_spans: PositiveInt = 3
    max_omissions: NonNegativeInt = 1


def reply_guide(vocabulary: LLTokenizer, completions: Sequence[str], limits: ReplyLimits) -> GrammarGuide:
    """Return the guide of a batch of replies about these completions."""

    def second_stage(i: int, first_stage: str) -> str:
        return quotes_grammar(completions[i], json.loads(first_stage + "}")["critique"], limits)

    return GrammarGuide(vocabulary, [lambda: critique_grammar(limits)] * len(completions), second_stage)


def critique_grammar(limits: ReplyLimits) -> str:
    """Return the grammar of `{"reasoning": ..., "critique": ...`: at least a sentence each, on one line, unquoted."""
    return rf"""
start: "{{\"reasoning\": \"" REASONING "\", \"critique\": \"" CRITIQUE "\""
REASONING: {_prose(limits.reasoning_length, min_length=_MIN_SENTENCE)}
CRITIQUE: {_prose(limits.critique_length, min_length=_MIN_SENTENCE)}
"""


def quotes_grammar(completion: str, critique: str, limits: ReplyLimits) -> str:
    """Return the grammar of `, "spans": [...], "omissions": [...]}`, with a span if anything can be quoted."""
    spans = repeat_rule("span", ", ", limits.max_spans) if is_quotable(completion) else ""
    omissions = f"[{repeat_rule('omission', ', ', limits.max_omissions)}]" if limits.max_omissions else ""
    rules = [f'start: ", \\"spans\\": [" {spans} "], \\"omissions\\": [" {omissions} "]}}"']
    if spans:
        rules += [
            r'span: "{\"quote\": \"" QUOTE "\", \"phrase\": \"" PHRASE "\", \"label\": \"" LABEL '
            r'"\", \"severity\": \"" SEVERITY "\", \"instead\": " instead "}"',
            r'instead: "null" | "\"\"" | "\"" INSTEAD "\""',
            f"INSTEAD: {_words(limits.instead_length)}",
            f"QUOTE: {quote_rule(_chunks(completion), _QUOTE_START, limits.quote_length)}",
            'LABEL: "good" | "poor"',
        ]
    if omissions:
        rules += [
            r'omission: "{\"text\": \"" TEXT "\", \"phrase\": \"" PHRASE "\", \"severity\": \"" SEVERITY "\"}"',
            f"TEXT: {_prose(limits.omission_length)}",
        ]
    if spans or omissions:
        rules += [
            f"PHRASE: {quote_rule(_chunks(critique), _QUOTE_START, limits.critique_length)}",
            "SEVERITY: " + " | ".join(f'"{word}"' for word in SEVERITIES),
        ]
    return "\n".join(rules) + "\n"


def is_quotable(text: str) -> bool:
    """Return whether a quote can start anywhere in the text."""
    return any(re.match(_QUOTE_START, chunk) for chunk in _chunks(text))


def _prose(max_length: int, min_length: int = 1) -> str:
    """A letter first: a small model otherwise writes a row of dots."""
    return rf"/[A-Za-z][^{_SPECIAL}]{{{min(min_length, max_length) - 1},{max_length - 1}}}/"


def _words(max_length: int) -> str:
    """What may stand in the text: it begins with what a quote may begin with."""
    return rf"/[^ {_SPECIAL}][^{_SPECIAL}]{{0,{max_length - 1}}}/"


def _chunks(text: str) -> list[str]:
    """Words, spaces and marks, each escaped as a whole: a quote can never split an escape."""
    return [json.dumps(chunk, ensure_ascii=False)[1:-1] for chunk in QUOTE_CHUNK.findall(text)]
