"""A small rule-based stemmer for British and American English."""

from __future__ import annotations

import re
from functools import lru_cache

from text2grad.text.lexicon import IRREGULAR_FORMS

_VOWEL = re.compile("[aeiouy]")
_DERIVATION = re.compile(
    "(?:isation|ization|ational|ation|ition|ment|ness|ance|ence|able|ible|ity|ive|ion|ally|ly|al|er|or|ist|ism|ful|ous"
    "|ant|ent|ise|ize|iser|izer|ate|at|is|iz)$"
)


def lower_word(text: str) -> str:
    """Return a word in lower case and with a straight apostrophe."""
    return text.lower().replace("’", "'")


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """Return what a lower-case word shares with its inflections, near derivations and other spellings.

    A stem is not itself a word. Errs towards joining words that differ ("invest", "investor"): for a critic, a missed
    fault costs less than blame for an honest paraphrase.
    """
    word = IRREGULAR_FORMS.get(word, word)
    if len(word) <= 3:
        return word
    return _strip_ending(_strip_derivation(_strip_inflection(word)))


def _strip_inflection(word: str) -> str:
    if word.endswith(("ies", "ied")):
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    if word.endswith("tre"):
        return word[:-2] + "er"
    for suffix in ("ing", "ed"):
        rest = word.removesuffix(suffix)
        if rest != word and len(rest) >= 3 and _VOWEL.search(rest):
            return rest
    return word


def _strip_derivation(word: str) -> str:
    ending = _DERIVATION.search(word, 4)  # four letters must remain; the longest ending starts first
    return word[: ending.start()] if ending else word


def _strip_ending(word: str) -> str:
    """Drop the letters that inflection drops or doubles ("make", "planned"), and spell "colour" as "color"."""
    if len(word) > 4:
        word = word.replace("our", "or")
    if len(word) > 3 and word[-1] in "eyi":
        word = word[:-1]
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word
