"""One optimiser step from the formulas, in Python floats, token by token. It shares no code with the library.

A step is ragged: one list of tokens per sample. Samples that are not trained on are empty lists here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

Rows = list[list[float]]


@dataclass(frozen=True)
class Settings:
    """As in PolicySettings; `beta` is the current one."""

    estimator: str
    gamma: float
    lam: float
    group_size: int
    normalization: str
    reward_clip: float
    beta: float
    kl_in_loss: bool
    epsilon: float
    epsilon_value: float
    vf_coef: float
    entropy_coef: float


@dataclass(frozen=True)
class Targets:
    """Advantages and value targets of one step."""

    advantages: Rows
    returns: Rows


def deviation(numbers: Sequence[float]) -> float:
    mean = sum(numbers) / len(numbers)
    return math.sqrt(sum((x - mean) ** 2 for x in numbers) / len(numbers))


def reward_scale(totals: Sequence[float]) -> float:
    """Standard deviation of the totals of all valid samples so far; 1 while there is none."""
    spread = deviation(totals) if len(totals) > 1 else 0.0
    return spread if spread > 1e-6 else 1.0


def penalised(rewards: Rows, scale: float, logprobs: Rows, reference: Rows, settings: Settings) -> Rows:
    """r_t = clip(d_t / scale) - beta * (log pi(y_t) - log pi_ref(y_t)), the latter where it is not in the loss."""
    beta = 0.0 if settings.kl_in_loss else settings.beta
    bound = settings.reward_clip
    return [
        [max(-bound, min(bound, d / scale)) - beta * (now - then) for d, now, then in zip(*row, strict=True)]
        for row in zip(rewards, logprobs, reference, strict=True)
    ]


def estimate(name: str, rewards: Rows, values: Rows, group_size: int, gamma: float, lam: float) -> Targets:
    """The formulas of docs/estimators.md."""
    nothing = [[0.0] * len(row) for row in rewards]
    if name == "gae":
        advantages = []
        for row, guesses in zip(rewards, values, strict=True):
            after = [*guesses[1:], 0.0]
            errors = [r + gamma * then - v for r, v, then in zip(row, guesses, after, strict=False)]
            advantages.append([to_go(errors, t, gamma * lam) for t in range(len(row))])
        targets = [[a + v for a, v in zip(*row, strict=True)] for row in zip(advantages, values, strict=True)]
        return Targets(advantages, targets)
    if name == "reinforce":
        return Targets([[to_go(row, t, gamma * lam) for t in range(len(row))] for row in rewards], nothing)
    if name == "rloo":
        totals = [[sum(row)] for row in rewards]
        baselines = [mean_at([totals[j] for j in siblings(i, rewards, group_size)], 0) for i in range(len(rewards))]
        return Targets(
            [[total - baseline] * len(row) for row, (total,), baseline in zip(rewards, totals, baselines, strict=True)],
            nothing,
        )
    if name == "rloo_tokens":
        earned = [[to_go(row, t, gamma * lam) for t in range(len(row))] for row in rewards]
        advantages = []
        for i, own in enumerate(earned):
            others = [earned[j] for j in siblings(i, rewards, group_size)]
            advantages.append([g - mean_at(others, t) for t, g in enumerate(own)])
        return Targets(advantages, nothing)
    assert name == "local"
    credit = []
    for i, row in enumerate(rewards):
        strangers = [j for j, other in enumerate(rewards) if other and j != i]
        compared = [rewards[j][-1] for j in siblings(i, rewards, group_size) or strangers]
        usual = sum(compared) / len(compared) if compared else 0.0
        talkative = [j for j, other in enumerate(rewards) if len(other) > 1 and j != i]
        close = [j for j in talkative if j // group_size == i // group_size]
        spoken = [sum(rewards[j][:-1]) / len(rewards[j][:-1]) for j in close or talkative]
        a_word = sum(spoken) / len(spoken) if spoken else 0.0
        # Enough tokens after the end that the rest of the series is negligible.
        words, end = [*row[:-1], *[a_word] * 2000], len(row) - 1
        credit.append([to_go(words, t, gamma * lam) + gamma ** (end - t) * (row[-1] - usual) for t in range(len(row))])
    advantages = [[c - v for c, v in zip(*row, strict=True)] for row in zip(credit, values, strict=True)]
    return Targets(advantages, credit)


def with_outcomes(
    advantages: Rows, rewards: Rows, outcomes: Sequence[float | None], group_size: int, decay: float | None
) -> Rows:
    """A_t = (S_i - b_i) + (c_t - mean c) / n for the samples with an outcome, c_t less the others' mean at t.

    decay None: A_t = S_i - b_i. A sample that is alone has no b_i, and gets no S_i.
    """
    totals = {
        i: sum(row) + o for i, (row, o) in enumerate(zip(rewards, outcomes, strict=True)) if row and o is not None
    }
    shifted = []
    for i, row in enumerate(advantages):
        if i not in totals:
            shifted.append(row)
            continue
        close = [j for j in totals if j != i and j // group_size == i // group_size]
        compared = [totals[j] for j in close or totals if j != i]
        level = totals[i] - sum(compared) / len(compared) if compared else 0.0
        if decay is None:
            shifted.append([level] * len(row))
            continue
        others = [other for j, other in enumerate(advantages) if other and j != i]
        credit = [a - mean_at(others, t) for t, a in enumerate(row)]
        mean, reach = sum(credit) / len(credit), sum(decay**t for t in range(len(credit)))
        shifted.append([level + (c - mean) / reach for c in credit])
    return shifted


def to_go(row: Sequence[float], start: int, discount: float) -> float:
    """sum_l discount^l * row[start + l]"""
    return sum(discount**k * value for k, value in enumerate(row[start:]))


def siblings(i: int, rows: Rows, group_size: int) -> list[int]:
    """The other valid samples of the same prompt."""
    return [j for j, row in enumerate(rows) if row and j != i and j // group_size == i // group_size]


def mean_at(rows: Rows, t: int) -> float:
    """0 after a row's end; 0 without rows."""
    return sum(row[t] if t < len(row) else 0.0 for row in rows) / len(rows) if rows else 0.0


def normalized(advantages: Rows, how: str) -> Rows:
    """Over all tokens of the step."""
    everyone = [a for row in advantages for a in row]
    if how == "none" or len(everyone) < 2:
        return advantages
    shift = sum(everyone) / len(everyone) if how == "whiten" else 0.0
    spread = deviation(everyone) + 1e-6
    return [[(a - shift) / spread for a in row] for row in advantages]


@dataclass(frozen=True)
class Terms:
    """Sums over a step's tokens, before any weight."""

    policy: float
    value: float
    entropy: float
    kl: float
    clipped: int
    divergence: float
    tokens: int

    def loss(self, settings: Settings) -> float:
        """-J_clip + c_v L_V - c_e H + beta KL, per token."""
        vf_coef = settings.vf_coef if settings.estimator in ("gae", "local") else 0.0
        kl = settings.beta * self.kl if settings.kl_in_loss else 0.0
        whole = self.policy + vf_coef * self.value - settings.entropy_coef * self.entropy + kl
        return whole / self.tokens


def terms(
    logprobs: Rows,
    values: Rows,
    entropy: Rows,
    old: Rows,
    reference: Rows,
    guesses: Rows,
    targets: Targets,
    s: Settings,
) -> Terms:
    """PPO's objective and its other terms. old, guesses: log-probabilities and values under the sampling policy."""
    policy = value = bonus = kl = divergence = 0.0
    clipped = tokens = 0
    for i, row in enumerate(targets.advantages):
        for t, advantage in enumerate(row):
            ratio = math.exp(logprobs[i][t] - old[i][t])
            bounded = max(1 - s.epsilon, min(1 + s.epsilon, ratio))
            policy -= min(ratio * advantage, bounded * advantage)
            clipped += bounded * advantage < ratio * advantage
            guess, target = guesses[i][t], targets.returns[i][t]
            near = max(guess - s.epsilon_value, min(guess + s.epsilon_value, values[i][t]))
            value += 0.5 * max((values[i][t] - target) ** 2, (near - target) ** 2)
            bonus += entropy[i][t]
            away = reference[i][t] - logprobs[i][t]
            kl += math.exp(away) - 1 - away
            divergence += ratio - 1 - math.log(ratio)
            tokens += 1
    return Terms(policy, value, bonus, kl, clipped, divergence, tokens)
