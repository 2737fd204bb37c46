"""Warnings about prompt sets: duplicate ids, and held-out prompts that are trained on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from text2grad.schema import Example


def data_warnings(train: Sequence[Example], heldout: Sequence[Example]) -> list[str]:
    """Return one sentence per problem, with a number and an example."""
    warnings = []
    for name, examples in (("training", train), ("held-out", heldout)):
        repeated = [identity for identity, count in Counter(example.id for example in examples).items() if count > 1]
        if repeated:
            warnings.append(f'{_count(repeated, "id")} of {name} examples occur more than once, as "{repeated[0]}"')
    trained = {example.prompt_text for example in train}
    leaked = [example.id for example in heldout if example.prompt_text in trained]
    if leaked:
        warnings.append(
            f"{_count(leaked, 'prompt')} of {len(heldout)} held-out examples are also trained on, as that of "
            f'"{leaked[0]}": their scores do not show what is learned beyond the training data'
        )
    return warnings


def _count(items: Sequence[str], noun: str) -> str:
    return f"{len(items)} {noun}" if len(items) == 1 else f"{len(items)} {noun}s"
