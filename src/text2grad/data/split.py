"""Splitting examples so that all that share a prompt are in the same split."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Literal

from text2grad.schema import Example

Split = Literal["train", "heldout"]


def split_by_prompt(
    examples: Iterable[Example],
    share: float,
    salt: str = "",
    key: Callable[[Example], str] = lambda example: example.prompt_text,
) -> tuple[list[Example], list[Example]]:
    """Return (training, held-out) examples; the split depends on the prompts only, not on their order.

    share: fraction of the prompts to hold out. salt: gives a different split. key: examples with the same key stay
    together.
    """
    train: list[Example] = []
    heldout: list[Example] = []
    for example in examples:
        digest = hashlib.blake2b(f"{salt}\0{key(example)}".encode(), digest_size=8).digest()
        (heldout if int.from_bytes(digest, "big") / 2**64 < share else train).append(example)
    return train, heldout
