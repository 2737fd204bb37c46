"""The grammar of a generated critique: always of the right format, with quotes that are in the completion.

Free text and quotes are bounded in characters, so a critique ends within `max_critique_tokens`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

import numpy as np
from llguidance import LLTokenizer

from text2grad.reward_model.critique_format import (
    LINE_BREAKS,
    MAX_OCCURRENCE,
    CritiqueFormat,
    CritiqueLimits,
    quote_json,
)
from text2grad.rollout.constrained import FREE_TEXT_MARGIN, FreeTextTracker, GrammarGuide
from text2grad.rollout.grammar import QUOTE_CHUNK, quote_rule, repeat_rule

_QUOTE_START = r'([^\s\\]|\\["\\bu])'  # no white space, which is escaped except for the space
_STRUCTURE = len("Reasoning: Critique: Good: Poor: Missing: nonenonenone") + 5


def critique_guide(
    vocabulary: LLTokenizer, completions: Sequence[str], critique_format: CritiqueFormat
) -> GrammarGuide:
    """Return the guide of a batch of critiques of these completions."""
    grammars = [partial(critique_grammar, completion, critique_format) for completion in completions]
    tracker = partial(track_free_text, vocabulary, critique_format, len(completions))
    return GrammarGuide(vocabulary, grammars, free_text=tracker)


def track_free_text(
    vocabulary: LLTokenizer, critique_format: CritiqueFormat, num_completions: int
) -> FreeTextTracker | None:
    """Return the tracker of the free text that critiques start with, if they do."""
    if critique_format.order != "critique_first":
        return None
    name = "reasoning" if critique_format.limits.reasoning else "critique"
    short = critique_format.limits.model_copy(update={name: FREE_TEXT_MARGIN + 1})
    grammar = critique_grammar("", critique_format.model_copy(update={"limits": short}))
    max_length = getattr(critique_format.limits, name)
    return FreeTextTracker(vocabulary, f"{name.capitalize()}: ", max_length, grammar, num_completions)


def critique_grammar(completion: str, critique_format: CritiqueFormat) -> str:
    """Return the grammar in Lark's notation."""
    limits = critique_format.limits
    lists = r'"Good: " spans "\nPoor: " corrections "\nMissing: " missing'
    prose = (r'"Reasoning: " REASONING "\n" ' if limits.reasoning else "") + '"Critique: " CRITIQUE'
    start = {
        "spans_only": lists,
        "critique_first": rf'{prose} "\n" {lists}',
        "spans_first": rf'{lists} "\n" {prose}',
    }[critique_format.order]
    rules = [f"start: {start}"]
    if critique_format.order != "spans_only":
        rules.append(f"CRITIQUE: {_prose(limits.critique)}")
        if limits.reasoning:
            rules.append(f"REASONING: {_prose(limits.reasoning)}")
    chunks = _quotable_chunks(completion)
    if chunks:
        rules += [
            f'spans: "none" | {repeat_rule("span", "; ", limits.spans)}',
            r'span: "\"" QUOTE "\"" NUMBER?',
            f"QUOTE: {quote_rule(chunks, _QUOTE_START, limits.quote)}",
            f"NUMBER: /#[1-{MAX_OCCURRENCE}]/",
            f'corrections: "none" | {repeat_rule("correction", "; ", limits.spans)}',
        ]
        if limits.replacement:
            rules += [
                r'correction: span (" -> \"" REPLACEMENT? "\"")?',
                f"REPLACEMENT: {_escaped_prose(limits.replacement)}",
            ]
        else:
            rules.append("correction: span")
    else:
        rules += ['spans: "none"', 'corrections: "none"']
    if limits.omissions:
        rules += [
            f'missing: "none" | {repeat_rule("omission", "; ", limits.omissions)}',
            r'omission: "\"" TEXT "\""',
            f"TEXT: {_escaped_prose(limits.omission)}",
        ]
    else:
        rules.append('missing: "none"')
    return "\n".join(rules) + "\n"


def max_critique_tokens(completion: str, limits: CritiqueLimits) -> int:
    """Return the length of the longest critique, the end token included: a token has at least one byte.

    A character has at most four bytes; those of quotes are the completion's own. A quote that starts with an escape may
    be one character longer than its limit.
    """
    quote = _max_bytes(quote_json(completion)[1:-1], limits.quote + 1)
    spans = 2 * limits.spans * (quote + len('""#9; '))
    replacements = limits.spans * (4 * limits.replacement + len(' -> ""'))
    omissions = limits.omissions * (4 * limits.omission + len('""; '))
    return 4 * (limits.reasoning + limits.critique) + spans + replacements + omissions + _STRUCTURE + 1


def _prose(max_length: int) -> str:
    return rf"/[^ {LINE_BREAKS}][^{LINE_BREAKS}]{{0,{max_length - 1}}}/"


def _escaped_prose(max_length: int) -> str:
    """Prose between quotation marks; an escaped character counts as one."""
    escaped, plain = r'\\["\\]', rf'{LINE_BREAKS}"\\'
    return rf"/({escaped}|[^ {plain}])({escaped}|[^{plain}]){{0,{max_length - 1}}}/"


def _max_bytes(text: str, width: int) -> int:
    """Return the most bytes that `width` neighbouring characters take in UTF-8."""
    ends = np.cumsum([0, *(len(character.encode()) for character in text)])
    return int((ends[width:] - ends[:-width]).max()) if len(text) > width else int(ends[-1])


def _quotable_chunks(completion: str) -> list[str]:
    """Return the chunks as a quote holds them, each escaped as a whole; none if no quote could start."""
    chunks = [quote_json(chunk)[1:-1] for chunk in QUOTE_CHUNK.findall(completion)]
    return chunks if any(re.match(_QUOTE_START, chunk) for chunk in chunks) else []
