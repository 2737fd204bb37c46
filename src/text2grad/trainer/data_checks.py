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
            warnings.append(f'ids that several {name} examples have: {len(repeated)}, as "{repeated[0]}"')
    trained = {example.prompt_text for example in train}
    leaked = [example.id for example in heldout if example.prompt_text in trained]
    if leaked:
        warnings.append(
            f'held-out examples whose prompt is also trained on: {len(leaked)} of {len(heldout)}, as "{leaked[0]}"; '
            f"their scores do not show what is learned beyond the training data"
        )
    return warnings
