"""From rewards, log-probabilities, values and masks to the loss and its gradient: the library against `slow_policy`.

The network is replaced by one number for each token, so that a gradient is a difference of two slow losses.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from pathlib import Path

import pytest
import slow_policy
import torch
from accelerate import Accelerator
from slow_policy import Rows
from torch import Tensor, nn

from text2grad.distributed.learner import Learner
from text2grad.models.batching import TokenBatch
from text2grad.models.policy import Scores
from text2grad.schema import Example
from text2grad.trainer.batch import Batch, Rollout, RolloutRewards, make_batch
from text2grad.trainer.config import Text2GradConfig
from text2grad.trainer.state import KLController, RunningScale, TrainerState
from text2grad.trainer.update import update

NETWORK = ("logprobs", "entropy", "values")
RATE = 0.05
NUDGE = 1e-5


@dataclass(frozen=True)
class Case:
    """A step's samples, ragged, and the settings of the update."""

    args: Text2GradConfig
    lengths: list[int]
    ended: list[bool]
    valid: list[bool]
    earlier_totals: list[float]
    rewards: Rows
    outcomes: list[float | None]
    old: dict[str, Rows]
    reference: Rows
    now: dict[str, Rows]

    @property
    def usable(self) -> list[bool]:
        masked = self.args.mask_truncated_completions
        return [valid and (ended or not masked) for valid, ended in zip(self.valid, self.ended, strict=True)]


class Table(nn.Module):
    """One parameter of each kind per token; the prompt is the index of the sample."""

    share_prompts = False

    def __init__(self, now: dict[str, Rows]) -> None:
        super().__init__()
        self.tables = nn.ParameterList([nn.Parameter(padded(now[name])) for name in NETWORK])

    def forward(self, rows: TokenBatch, temperature: float, entropy_gradient: bool = False) -> Scores:
        samples = rows.ids[rows.rows, 0]
        return Scores(*(rows.scatter(table[samples, rows.token_indices]) for table in self.tables))


def padded(rows: Rows) -> Tensor:
    width = max(map(len, rows))
    return torch.tensor([[*row, *[0.0] * (width - len(row))] for row in rows], dtype=torch.double)


def ragged(tensor: Tensor, lengths: list[int]) -> Rows:
    return [row[:n].tolist() for row, n in zip(tensor, lengths, strict=True)]


def random_case(seed: int, folder: Path) -> Case:
    dice = random.Random(seed)
    group_size = dice.choice([1, 2, 3])
    count = group_size * dice.randint(1, 3)
    lengths = [dice.randint(1, 5) for _ in range(count)]

    def table(low: float, high: float) -> Rows:
        return [[dice.uniform(low, high) for _ in range(n)] for n in lengths]

    old = {"logprobs": table(-4, 0), "entropy": table(0, 2), "values": table(-1, 1)}
    now = {name: [[x + dice.gauss(0, 0.3) for x in row] for row in rows] for name, rows in old.items()}
    estimator = dice.choice(["gae", "reinforce", "local", *(["rloo", "rloo_tokens"] if group_size > 1 else [])])
    args = Text2GradConfig(
        output_dir=folder,
        per_device_train_batch_size=count,
        num_generations=group_size,
        num_iterations=dice.choice([1, 2]),
        max_grad_norm=dice.choice([0.05, 1000.0]),
        estimator=estimator,
        gamma=dice.choice([0.0, 0.7, 1.0]),
        lam=dice.choice([0.0, 0.3, 0.95, *([1.0] if estimator != "local" else [])]),
        advantage_normalization=dice.choice(["scale", "whiten", "none"]),
        reward_clip=dice.choice([0.5, 10.0]),
        mask_truncated_completions=dice.random() < 0.3,
        beta=dice.choice([0.0, 0.2]),
        kl_placement=dice.choice(["reward", "loss"]),
        epsilon=dice.choice([0.1, 0.4]),
        epsilon_value=dice.choice([0.1, 0.4]),
        vf_coef=dice.choice([0.0, 0.3]),
        entropy_coef=dice.choice([0.0, 0.1]),
        max_tokens_per_batch=dice.choice([1, 8, 1000]),
    )
    share = dice.choice([0.0, 0.7, 1.0])
    outcomes = [dice.uniform(-2, 2) if dice.random() < share else None for _ in lengths]
    return Case(
        args=args,
        lengths=lengths,
        ended=[dice.random() < 0.7 for _ in lengths],
        valid=[dice.random() < 0.75 for _ in lengths],
        earlier_totals=[dice.uniform(-3, 3) for _ in range(dice.choice([0, 1, 4]))],
        rewards=[[dice.choice([-1.0, -0.5, 0.0, 0.0, 1.0, -30.0]) for _ in range(n)] for n in lengths],
        outcomes=outcomes,
        old=old,
        reference=table(-4, 0),
        now=now,
    )


def rollout_of(case: Case) -> Rollout:
    count = len(case.lengths)
    return Rollout(
        prompts=[[i] for i in range(count)],
        completions=[[7] * n for n in case.lengths],
        ended=case.ended,
        offsets=[[]] * count,
        examples=[Example(id=str(i), prompt="") for i in range(count)],
    )


def batch_of(case: Case) -> Batch:
    """The batch that the library computes."""
    scale = RunningScale()
    scale.update(torch.tensor(case.earlier_totals, dtype=torch.double))
    state = TrainerState(0, KLController(case.args.beta), scale)
    old = Scores(*(padded(case.old[name]) for name in NETWORK))
    reference = Scores(padded(case.reference), old.entropy, old.values)
    outcomes = torch.tensor([math.nan if o is None else o for o in case.outcomes], dtype=torch.double)
    rewards = RolloutRewards(padded(case.rewards), outcomes, torch.tensor(case.valid))
    return make_batch(rollout_of(case), rewards, old, reference, case.args, state)


def settings_of(args: Text2GradConfig) -> slow_policy.Settings:
    return slow_policy.Settings(
        estimator=args.estimator,
        gamma=args.gamma,
        lam=args.lam,
        group_size=args.num_generations,
        normalization=args.advantage_normalization,
        reward_clip=args.reward_clip,
        beta=args.beta,
        kl_in_loss=args.kl_placement == "loss",
        epsilon=args.epsilon,
        epsilon_value=args.epsilon_value,
        vf_coef=args.vf_coef,
        entropy_coef=args.entropy_coef,
    )


def slow_targets(case: Case) -> slow_policy.Targets:
    settings = settings_of(case.args)

    def usable(rows: Rows) -> Rows:
        return [row if use else [] for row, use in zip(rows, case.usable, strict=True)]

    given = zip(case.rewards, case.outcomes, case.valid, strict=True)
    totals = [sum(row) + (outcome or 0.0) for row, outcome, valid in given if valid]
    scale = slow_policy.reward_scale([*case.earlier_totals, *totals])
    rewards = slow_policy.penalised(case.rewards, scale, case.old["logprobs"], case.reference, settings)
    targets = slow_policy.estimate(
        settings.estimator,
        usable(rewards),
        usable(case.old["values"]),
        settings.group_size,
        settings.gamma,
        settings.lam,
    )
    bound = settings.reward_clip
    scaled = [None if o is None else o / scale for o in case.outcomes]
    known = [o for o, valid in zip(scaled, case.valid, strict=True) if valid and o is not None]
    center = sum(known) / len(known) if known else 0.0
    outcomes = [None if o is None else center + max(-bound, min(bound, o - center)) for o in scaled]
    decay = None if settings.estimator == "rloo" else settings.gamma * settings.lam
    advantages = slow_policy.with_outcomes(targets.advantages, usable(rewards), outcomes, settings.group_size, decay)
    return slow_policy.Targets(slow_policy.normalized(advantages, settings.normalization), targets.returns)


def slow_terms(case: Case, now: dict[str, Rows], targets: slow_policy.Targets) -> slow_policy.Terms:
    return slow_policy.terms(
        now["logprobs"],
        now["values"],
        now["entropy"],
        case.old["logprobs"],
        case.reference,
        case.old["values"],
        targets,
        settings_of(case.args),
    )


def slow_gradient(case: Case, now: dict[str, Rows], targets: slow_policy.Targets) -> dict[str, Rows]:
    """Central differences of the slow loss."""
    gradient = {name: [[0.0] * len(row) for row in rows] for name, rows in now.items()}
    for name, rows in now.items():
        for i, row in enumerate(rows):
            for t, here in enumerate(row):
                losses = []
                for there in (here - NUDGE, here + NUDGE):
                    row[t] = there
                    losses.append(slow_terms(case, now, targets).loss(settings_of(case.args)))
                row[t] = here
                gradient[name][i][t] = (losses[1] - losses[0]) / (2 * NUDGE)
    return gradient


def slow_descent(case: Case) -> tuple[dict[str, Rows], slow_policy.Terms, float]:
    """All passes: (the tables after them, the terms that the last pass saw, its gradient's length)."""
    targets, now = slow_targets(case), {name: [list(row) for row in rows] for name, rows in case.now.items()}
    for _ in range(case.args.num_iterations):
        seen, gradient = slow_terms(case, now, targets), slow_gradient(case, now, targets)
        length = math.sqrt(sum(g * g for rows in gradient.values() for row in rows for g in row))
        shrink = min(1.0, case.args.max_grad_norm / (length + 1e-6))
        for name, rows in gradient.items():
            for i, row in enumerate(rows):
                for t, slope in enumerate(row):
                    now[name][i][t] -= RATE * shrink * slope
    return now, seen, length


CASES = range(60)


@pytest.mark.parametrize("seed", CASES)
def test_advantages_and_returns(seed: int, tmp_path: Path) -> None:
    case = random_case(seed, tmp_path)
    batch, expected = batch_of(case), slow_targets(case)
    lengths = [n if use else 0 for n, use in zip(case.lengths, case.usable, strict=True)]
    assert batch.mask.sum(1).tolist() == lengths
    for ours, theirs in ((batch.advantages, expected.advantages), (batch.returns, expected.returns)):
        assert not ours[~batch.mask.bool()].any()
        for one, other in zip(ragged(ours, lengths), theirs, strict=True):
            assert one == pytest.approx(other, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("seed", CASES)
def test_the_update_is_a_descent_of_the_slow_loss(seed: int, tmp_path: Path) -> None:
    case = random_case(seed, tmp_path)
    network = Table(case.now)
    optimizer = torch.optim.SGD(network.parameters(), lr=RATE)
    result = update(Learner(network, optimizer, Accelerator(cpu=True)), rollout_of(case), batch_of(case), case.args)
    tables = zip(NETWORK, network.tables, strict=True)
    after = {name: ragged(table.detach(), case.lengths) for name, table in tables}
    if not any(case.usable):
        assert after == case.now
        assert result.stats["num_updates"] == 0
        return
    expected, seen, length = slow_descent(case)
    # An advantage of 0 but for rounding has no sign, so no side on which it would be clipped.
    signless = sum(abs(a) < 1e-12 for row in slow_targets(case).advantages for a in row)
    assert result.error is None
    assert result.stats == {
        "policy_loss": pytest.approx(seen.policy / seen.tokens, rel=1e-5, abs=1e-6),
        "value_loss": pytest.approx(seen.value / seen.tokens, rel=1e-5, abs=1e-6),
        "entropy": pytest.approx(seen.entropy / seen.tokens),
        "clip_fraction": pytest.approx(seen.clipped / seen.tokens, abs=1e-9 + signless / seen.tokens),
        "approx_kl": pytest.approx(seen.divergence / seen.tokens, rel=1e-5, abs=1e-6),
        "grad_norm": pytest.approx(length, rel=1e-5, abs=1e-7),
        "num_updates": case.args.num_iterations,
        "skipped": 0,
    }
    for name in NETWORK:
        for one, other in zip(after[name], expected[name], strict=True):
            assert one == pytest.approx(other, rel=1e-7, abs=1e-7), name


def test_the_cases_cover_what_they_should(tmp_path: Path) -> None:
    cases = [random_case(seed, tmp_path) for seed in CASES]
    assert {case.args.estimator for case in cases} == {"gae", "reinforce", "rloo", "rloo_tokens", "local"}
    assert any(not any(case.usable) for case in cases)
    assert any(case.usable != case.valid and any(case.usable) for case in cases)
    assert any(None in case.outcomes and any(o is not None for o in case.outcomes) for case in cases)
    assert any(slow_descent(case)[1].clipped for case in cases[:9] if any(case.usable))
