"""Token rewards from the spans and omissions of a critique.

- A token that no span mentions earns 0.
- A token is rewarded by every span that it overlaps. Overlapping spans add up, and the sum is clipped to [-1, 1];
  praise and blame of equal severity cancel.
- Omissions are charged to the decision to stop: the last token. A truncated completion has no end token; its last token
  is charged the same plus a penalty, so that not stopping is no escape.
- Failed feedback earns nothing and is marked invalid: its sample is masked, not counted as 0.
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

    mode: `uniform` gives a span's severity to each of its tokens (the paper); `normalized` divides it among them, so
        that a span's total is its severity whatever its length; `first` gives it to the first token. As controls with
        the same information, `sequence` puts the total of `normalized` on the last token (a scalar reward) and
        `shuffled` assigns the rewards of `normalized` to random tokens.
    omission_cap: the largest charge of all omissions together.
    truncation_penalty: added to the charge where the completion is truncated.
    """

    mode: Mode = "normalized"
    omission_cap: NonNegativeFloat = 2.0
    truncation_penalty: NonNegativeFloat = 1.0


DEFAULT_CREDIT = Credit()


def token_rewards(
    feedback: Feedback,
    offsets: Sequence[Range],
    *,
    truncated: bool = False,
    credit: Credit = DEFAULT_CREDIT,
    rng: np.random.Generator | None = None,
) -> tuple[Rewards, bool]:
    """Compute the reward of every token of a completion from its feedback.

    offsets: the character range of each token, as `text2grad.align.tokens.offsets(ids, tokenizer)` returns it. The
        last token is the one that ended the completion: the end token, usually of zero width.
    truncated: the completion was cut at the length limit, so its last token is an ordinary one.
    credit: how spans become rewards; the default spreads a span's severity over its tokens.
    rng: permutes the rewards in mode `shuffled`, which requires it; other modes use no random numbers.
    Returns (rewards of shape (tokens,), valid). Failed feedback and empty completions give zeros and False: mask them.
    """
    if credit.mode == "shuffled" and rng is None:
        raise ValueError("credit mode shuffled needs rng: pass numpy.random.default_rng(seed)")
    if feedback.status == "failed" or len(offsets) == 0:
        return np.zeros(len(offsets), dtype=np.float32), False
    span_mode = credit.mode if credit.mode in ("uniform", "first") else "normalized"
    rewards = span_rewards(signed_ranges(feedback), offsets, span_mode)
    if credit.mode == "shuffled" and rng is not None:
        rewards[:-1] = rng.permutation(rewards[:-1])
    elif credit.mode == "sequence":
        total = rewards.sum()
        rewards = np.zeros_like(rewards)
        rewards[-1] = total
    rewards[-1] -= end_charge(feedback, truncated, credit)
    return rewards, True


def signed_ranges(feedback: Feedback) -> list[tuple[int, int, float]]:
    """Return (start, end, value), value > 0 for praise and < 0 for blame; graded scores replace the spans."""
    if feedback.scores is not None:
        return list(feedback.scores)
    return [(s.start, s.end, s.severity if s.label == "good" else -s.severity) for s in feedback.spans]


def span_rewards(ranges: Sequence[tuple[int, int, float]], offsets: Sequence[Range], mode: Mode) -> Rewards:
    """Compute the reward of each token from the spans alone: shape (tokens,), within [-1, 1].

    mode: uniform, normalized or first. Tokens of zero width (special tokens) overlap nothing. Cost: tokens x spans.
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
    """Return the charge of the last token: for omissions, and for truncation."""
    omissions = min(sum(omission.severity for omission in feedback.omissions), credit.omission_cap)
    return omissions + (credit.truncation_penalty if truncated else 0.0)
