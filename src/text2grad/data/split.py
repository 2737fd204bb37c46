"""Holding examples out: all that share a prompt are on the same side."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable

from text2grad.schema import Example


def split_by_prompt(
    examples: Iterable[Example],
    share: float,
    salt: str = "",
    key: Callable[[Example], str] = lambda example: example.prompt_text,
) -> tuple[list[Example], list[Example]]:
    """(training, held out), the same whatever file or order the examples come in.

    share: of the prompts, held out. salt: another one gives another split. key: what must not be on both sides.
    """
    train: list[Example] = []
    heldout: list[Example] = []
    for example in examples:
        digest = hashlib.blake2b(f"{salt}\0{key(example)}".encode(), digest_size=8).digest()
        (heldout if int.from_bytes(digest, "big") / 2**64 < share else train).append(example)
    return train, heldout
