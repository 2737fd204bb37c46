"""Warnings of fields that rule critics can do without, but not do well: nothing fails where they are missing.

Where prompts are taken as the source of a summary and are none, as an instruction without its text, every word of the
summary is blamed. Where questions have no right answer, no answer is told from a wrong one.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Sequence
from functools import lru_cache

from text2grad.schema import Example
from text2grad.text.words import Key, Text, parse_text

log = logging.getLogger(__name__)
DOCUMENT, REFERENCE = "document", "reference"
_OTHER_REFERENCES = ("answer", "answers", "gold", "target", "label")  # names that other data sets have for it
MIN_WORDS = 15  # of a prompt; a shorter one may be no more than an instruction
MIN_OVERLAP, MIN_OVERLAP_OF_SHORT_PROMPT = 0.2, 0.5  # share of a summary's content words that the prompt has
_MIN_CONTENT = 3  # words of a summary of which a share can be told
_MAX_CHECKED = 16  # examples of a batch


def warn_of_missing_sources(examples: Sequence[Example]) -> None:
    """Log a warning, once, where at least half of the examples are judged by a prompt that hardly is a source."""
    checked = examples[:_MAX_CHECKED]
    doubtful = [(example, doubt) for example in checked if (doubt := _doubt(example)) is not None]
    if doubtful and 2 * len(doubtful) >= len(checked):
        example, doubt = doubtful[0]
        _warn(doubt, _near_key(example, DOCUMENT))


def warn_of_missing_references(examples: Sequence[Example]) -> None:
    """Log a warning, once, where at least half of the questions come without a right answer."""
    checked = examples[:_MAX_CHECKED]
    without = [example for example in checked if not example.reference]
    if without and 2 * len(without) >= len(checked):
        named = [name for name in _OTHER_REFERENCES if name in without[0].meta]
        _warn_of_reference(_near_key(without[0], REFERENCE) or (named[0] if named else None))


@lru_cache(maxsize=16)  # once per process
def _warn(doubt: str, near: str | None) -> None:
    name = f'; rename "{near}"' if near else ""
    log.warning(
        "grounding: examples have no `%s`, so the prompt is taken as the source of the summary, and it %s: almost "
        "every word will be blamed; give the source as `%s`%s",
        *(DOCUMENT, doubt, DOCUMENT, name),
    )


@lru_cache(maxsize=16)
def _warn_of_reference(near: str | None) -> None:
    log.warning(
        "qa: examples have no `%s`, so right answers cannot be told from wrong ones: the score says how much an answer "
        "has of what the passage says about the question, and answers of a few words score about -0.9; give the right "
        "answers as `%s`%s",
        *(REFERENCE, REFERENCE, f'; rename "{near}"' if near else ""),
    )


def _doubt(example: Example) -> str | None:
    """Return what tells that the prompt is not the source; None where it may be, or there is a document."""
    if DOCUMENT in example.meta:
        return None
    prompt, summary = parse_text(example.prompt_text), parse_text(example.completion)
    content = {key for word, key in zip(summary.words, summary.keys, strict=True) if word.is_content}
    if len(prompt.words) < MIN_WORDS and _overlap(content, prompt) < MIN_OVERLAP_OF_SHORT_PROMPT:
        return f"has only {len(prompt.words)} words"
    if len(content) >= _MIN_CONTENT and _overlap(content, prompt) < MIN_OVERLAP:
        return "has hardly a word of the summary"
    return None


def _overlap(content: set[Key], prompt: Text) -> float:
    return len(content.intersection(prompt.keys)) / max(1, len(content))


def _near_key(example: Example, wanted: str) -> str | None:
    """Return the extra key that may be the wanted one, misspelt."""
    near = difflib.get_close_matches(wanted, example.meta, n=1)
    return near[0] if near else None
