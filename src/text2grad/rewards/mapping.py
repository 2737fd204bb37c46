"""Spans and omissions to token rewards: how much each sampled token is worth.

The rules, in one place:

- A token that nobody mentioned earns 0.
- A token is paid by every span that it overlaps. Where spans overlap each other their shares add up, and the sum is
  kept within [-1, 1]; praise and blame of equal severity cancel.
- What is missing is charged to the decision to stop: the end token. A completion that was cut at the length limit has
  no end token; its last token pays the same charge plus a penalty, so that not stopping is no escape.
- Failed feedback earns nothing and is marked invalid: its sample is left out, not counted as 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import NonNegativeFloat

from text2grad.schema import Feedback, Range
from text2grad.settings import Settings

Mode = Literal["uniform", "normalized", "first", "sequence", "shuffled"]
Rewards = NDArray[np.float32]


class Credit(Settings):
    """How feedback becomes token rewards.

    mode: `uniform` pays a span's severity to each of its tokens (the paper); `normalized` spreads it over them, so that
        a span's total is its severity however long it is; `first` pays the first token. As controls with the same
        information, `sequence` puts the total of `normalized` on the last token (a scalar reward) and `shuffled` deals
        the rewards of `normalized` to random tokens.
    omission_cap: the most that all omissions together cost.
    truncation_penalty: what being cut at the length limit costs on top.
    """

    mode: Mode = "normalized"
    omission_cap: NonNegativeFloat = 2.0
    truncation_penalty: NonNegativeFloat = 1.0


def token_rewards(
    feedback: Feedback,
    offsets: Sequence[Range],
    end: int | None,
    credit: Credit,
    rng: np.random.Generator,
) -> tuple[Rewards, bool]:
    """Rewards of the sampled tokens, and whether they may be used.

    offsets: the character range of each token, as `align.tokens.offsets` gives it.
    end: index of the end token; None if the completion was cut at the length limit.
    rng: deals the rewards in mode `shuffled`; unused otherwise.
    Returns (rewards of shape (tokens,), valid). Failed feedback gives zeros and False.
    """
    rewards = np.zeros(len(offsets), dtype=np.float32)
    if feedback.status == "failed" or len(offsets) == 0:
        return rewards, False
    payer = len(offsets) - 1 if end is None else end
    charge = end_charge(feedback, truncated=end is None, credit=credit)
    local_mode = credit.mode if credit.mode in ("uniform", "first") else "normalized"
    rewards = span_rewards(signed_ranges(feedback), offsets, local_mode)
    if credit.mode == "shuffled":
        elsewhere = np.flatnonzero(np.arange(len(rewards)) != payer)
        rewards[elsewhere] = rng.permutation(rewards[elsewhere])
    if credit.mode == "sequence":
        total = rewards.sum()
        rewards = np.zeros_like(rewards)
        rewards[-1] = total
    rewards[payer] -= charge
    return rewards, True


def signed_ranges(feedback: Feedback) -> list[tuple[int, int, float]]:
    """(start, end, value) with value > 0 for praise and < 0 for blame. A critic's graded scores replace its spans."""
    if feedback.scores is not None:
        return list(feedback.scores)
    return [(s.start, s.end, s.severity if s.label == "good" else -s.severity) for s in feedback.spans]


def span_rewards(ranges: Sequence[tuple[int, int, float]], offsets: Sequence[Range], mode: Mode) -> Rewards:
    """What the spans alone pay to each token: shape (tokens,), within [-1, 1]. mode: uniform, normalized or first.

    Tokens of zero width (special tokens) overlap nothing. Cost: tokens x spans.
    """
    starts, ends = np.asarray(offsets, dtype=np.int64).reshape(-1, 2).T
    rewards = np.zeros(len(starts), dtype=np.float64)
    for start, end, value in ranges:
        tokens = np.flatnonzero((starts < end) & (ends > start) & (ends > starts))
        if len(tokens) == 0:
            continue
        if mode == "first":
            rewards[tokens[0]] += value
        elif mode == "normalized":
            rewards[tokens] += value / len(tokens)
        else:
            rewards[tokens] += value
    return rewards.clip(-1.0, 1.0).astype(np.float32)


def end_charge(feedback: Feedback, truncated: bool, credit: Credit) -> float:
    """What the token that ended the completion pays for what is missing, and for never having stopped."""
    missing = min(sum(omission.severity for omission in feedback.omissions), credit.omission_cap)
    return missing + (credit.truncation_penalty if truncated else 0.0)


def coverage(rewards: Rewards) -> float:
    """Share of tokens with a reward other than 0."""
    return float(np.count_nonzero(rewards) / len(rewards)) if len(rewards) else 0.0
