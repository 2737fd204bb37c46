"""Token rewards from the spans, the omissions and the score of a critique.

- A token that no span mentions earns 0.
- A span or an omission counts as much as it is certain: its severity times its confidence, and nothing below
  `credit.min_confidence`.
- A token is rewarded by every span that it overlaps. Overlapping spans add up, and the sum is clipped to [-1, 1];
  praise and blame of equal severity cancel.
- Where the critique has a score, the score is the total: spans say where, and what they do not explain is an outcome of
  the whole completion, which has no place in the text. A truncated completion pays a penalty on top.
- An omission whose place is known is charged, like a blamed span, to the token that came where it belongs.
- Where there is no score, other omissions are charged to the decision to stop: the last token. A truncated completion
  has no end token; its last token is charged the same plus the penalty, so that not stopping is no escape.
- Failed feedback earns nothing and is marked invalid: its sample is masked, not counted as 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, NonNegativeFloat, PositiveFloat

from text2grad.schema import Feedback, Omission, Range
from text2grad.settings import Settings

Mode = Literal["uniform", "normalized", "first", "sequence", "shuffled"]
Rewards = NDArray[np.float32]
SMALLEST_CONFIDENCE = 1e-9  # a span without any confidence has no effect, whatever the floor


class Credit(Settings):
    """How feedback becomes token rewards.

    mode: `uniform` gives a span's severity to each of its tokens (the paper); `normalized` divides it among them, so
        that a span's total is its severity whatever its length; `first` gives it to the first token. As controls with
        the same information, `sequence` is a scalar reward for the whole completion and `shuffled` assigns the rewards
        of `normalized` to random tokens.
    total: what the rewards of a completion sum to. `score` is the critic's score, less the truncation penalty; feedback
        without a score is treated as in `spans`: the sum of its spans, less its omissions and the penalty (the paper).
    max_span_total: the largest sum of the magnitudes of span rewards where the total is a score; larger ones are scaled
        down. Half of the range of the scores keeps spans from outweighing them: 1 for scores in [-1, 1].
    truncation_penalty: subtracted where the completion is truncated.
    min_confidence: spans whose place and label, and omissions that, are less certain than this earn nothing.
    """

    mode: Mode = "normalized"
    total: Literal["score", "spans"] = "score"
    max_span_total: PositiveFloat = 1.0
    truncation_penalty: NonNegativeFloat = 1.0
    min_confidence: Annotated[float, Field(ge=0, le=1)] = 0.25


class TokenRewards(NamedTuple):
    """The rewards of one completion.

    rewards: (tokens,). outcome: what the whole completion earns besides, so that `rewards.sum() + outcome` is the
    score; None where there is no score. valid: False for a sample to mask.
    """

    rewards: Rewards
    outcome: float | None
    valid: bool

    @property
    def total(self) -> float | None:
        """What the completion earned in all, as a scalar reward; None for a sample to mask."""
        return float(self.rewards.sum(dtype=np.float64)) + (self.outcome or 0.0) if self.valid else None


DEFAULT_CREDIT = Credit()


def token_rewards(
    feedback: Feedback,
    offsets: Sequence[Range],
    *,
    text: str | None = None,
    truncated: bool = False,
    credit: Credit = DEFAULT_CREDIT,
    rng: np.random.Generator | None = None,
) -> TokenRewards:
    """Compute the reward of every token of a completion from its feedback, and the outcome of the whole.

    offsets: the character range of each token, as `text2grad.align.tokens.offsets(ids, tokenizer)` returns it. The
        last token is the one that ended the completion: the end token, usually of zero width.
    text: the completion, if known: a missing sentence may begin as the one that came in its place, and then the first
        token that differs is charged.
    truncated: the completion was cut at the length limit, so its last token is an ordinary one.
    credit: how spans become rewards; the default spreads a span's severity over its tokens.
    rng: permutes the rewards in mode `shuffled`, which requires it; other modes use no random numbers.
    Failed feedback, spans outside the completion and empty completions give zeros and are not valid: mask them.
    """
    if credit.mode == "shuffled" and rng is None:
        raise ValueError("credit mode shuffled needs rng: pass numpy.random.default_rng(seed)")
    if feedback.status == "failed" or len(offsets) == 0 or _points_outside(feedback, offsets):
        return TokenRewards(np.zeros(len(offsets), dtype=np.float32), None, False)
    span_mode = credit.mode if credit.mode in ("uniform", "first") else "normalized"
    rewards = span_rewards(signed_ranges(feedback, credit.min_confidence), offsets, span_mode)
    placed, unplaced = _divide_omissions(feedback, credit.min_confidence)
    for omission, cost in placed:
        rewards[_charged_token(omission, offsets, text)] -= cost
    rewards = rewards.clip(-1.0, 1.0)
    if credit.mode == "shuffled" and rng is not None:
        rewards[:-1] = rng.permutation(rewards[:-1])
    penalty = credit.truncation_penalty if truncated else 0.0
    if credit.total == "score" and feedback.score is not None:
        rewards = np.zeros_like(rewards) if credit.mode == "sequence" else limit_total(rewards, credit.max_span_total)
        return TokenRewards(rewards, feedback.score - penalty - float(rewards.sum(dtype=np.float64)), True)
    if credit.mode == "sequence":
        total = rewards.sum()
        rewards = np.zeros_like(rewards)
        rewards[-1] = total
    rewards[-1] -= sum(cost for _, cost in unplaced) + penalty
    return TokenRewards(rewards, None, True)


def certain_omissions(feedback: Feedback, min_confidence: float = 0.0) -> list[tuple[Omission, float]]:
    """Return the omissions that are certain enough, each with its severity times its confidence."""
    floor = max(min_confidence, SMALLEST_CONFIDENCE)
    return [(one, one.severity * one.confidence) for one in feedback.omissions if one.confidence >= floor]


def _divide_omissions(
    feedback: Feedback, min_confidence: float
) -> tuple[list[tuple[Omission, float]], list[tuple[Omission, float]]]:
    """Return the certain omissions whose place is known, and the others."""
    certain = certain_omissions(feedback, min_confidence)
    return [pair for pair in certain if pair[0].insert_at is not None], [p for p in certain if p[0].insert_at is None]


def _charged_token(omission: Omission, offsets: Sequence[Range], text: str | None) -> int:
    """Return the index of the token that came where the missing words belong; at the end of the text the last one."""
    assert omission.insert_at is not None
    assert omission.insertion is not None
    place = omission.insert_at
    if text is not None:
        written, wanted = text[place:], omission.insertion + text[place:]
        place += next((i for i, (a, b) in enumerate(zip(written, wanted, strict=False)) if a != b), len(written))
    return next((i for i, (_, end) in enumerate(offsets) if end > place), len(offsets) - 1)


def _points_outside(feedback: Feedback, offsets: Sequence[Range]) -> bool:
    """Whether a span, a score or an omission is about characters that the completion does not have."""
    length = max(end for _, end in offsets)
    places = [end for _, end, _ in signed_ranges(feedback)] + [one.insert_at or 0 for one in feedback.omissions]
    return any(place > length for place in places)


def signed_ranges(feedback: Feedback, min_confidence: float = 0.0) -> list[tuple[int, int, float]]:
    """Return (start, end, value), value > 0 for praise and < 0 for blame; graded scores replace the spans.

    The value of a span is its severity times its confidence; those below `min_confidence` are left out.
    """
    if feedback.scores is not None:
        return list(feedback.scores)
    certain = [span for span in feedback.spans if span.confidence >= max(min_confidence, SMALLEST_CONFIDENCE)]
    return [(s.start, s.end, s.confidence * (s.severity if s.label == "good" else -s.severity)) for s in certain]


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


def limit_total(rewards: Rewards, max_total: float) -> Rewards:
    """Scale rewards of shape (tokens,) down so that their magnitudes sum to at most `max_total`."""
    total = float(np.abs(rewards).sum(dtype=np.float64))
    return rewards if total <= max_total else (rewards * (max_total / total)).astype(np.float32)
