"""How the words of a clause relate to the answer: who states a number that the answer lacks is likely to correct it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from text2grad.align.answer.document import Document
from text2grad.text.whitespace import is_function_part, key_set, part_key, split_parts

_NAME = re.compile(r"(?<=[\w,;] )[A-Z][a-z]+")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")


def relate_to_answer(clause: str, document: Document, prompt: str) -> list[str]:
    """Return the names of features: how many words, numbers and names are the answer's, the prompt's alone, or new."""
    answer, source = key_set(document.text), key_set(prompt)
    own = list(dict.fromkeys(part_key(part) for part in split_parts(clause) if not is_function_part(part)))
    places = [_place(key, answer, source) for key in own]
    counts = {letter: places.count(letter) for letter in "asn"}
    features = [f"{letter}{min(counts[letter], limit)}" for letter, limit in (("a", 4), ("s", 3), ("n", 5))]
    share = counts["a"] / max(1, len(own))
    features += [f"share{round(4 * share)}", f"kind {_kind(document)}"]
    for name, keys in (("number", _NUMBER.findall(clause)), ("name", map(str.lower, _NAME.findall(clause)))):
        found = {_place(part_key(key), answer, source) for key in keys}
        if found:
            features.append(f"{name} {''.join(sorted(found))}")
    if "?" in clause:
        features += [f"asks a{min(counts['a'], 3)}", f"asks share{round(3 * share)}"]
    return features


def _place(key: str, answer: Collection[str], source: Collection[str]) -> str:
    """Return where a word is found: in the answer, in the source alone, or nowhere (it is new)."""
    return "a" if key in answer else "s" if key in source else "n"


def _kind(document: Document) -> str:
    kinds: tuple[tuple[str, Callable[[], object]], ...] = (
        ("program", lambda: document.program is not None),
        ("letter", lambda: document.greeting or document.sign_off),
        ("list", lambda: document.items),
    )
    return next((name for name, holds in kinds if holds()), "prose")
