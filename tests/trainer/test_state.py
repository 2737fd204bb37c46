import json
import math
import random
from dataclasses import asdict
from itertools import pairwise

import pytest
import torch

from text2grad.trainer.state import KLController, RunningScale, TrainerState


def test_the_state_survives_json() -> None:
    state = TrainerState(3, KLController(0.1, target=6.0), RunningScale(2, 0.5, 0.25), skipped_updates=1)
    assert TrainerState(**json.loads(json.dumps(asdict(state)))) == state


def test_running_scale_matches_the_population_deviation_and_never_shifts() -> None:
    scale = RunningScale()
    assert scale.std == 1.0
    scale.update(torch.tensor([1.0, 2.0]))
    scale.update(torch.tensor([6.0]))
    assert scale.std == pytest.approx(math.sqrt(14 / 3))  # mean 3: (4 + 1 + 9) / 3


def test_one_slip_of_a_critic_does_not_make_all_later_rewards_tiny() -> None:
    totals = torch.linspace(0, 1, 64)
    plain, slipped = RunningScale(), RunningScale()
    plain.update(totals)
    slipped.update(torch.cat([totals[::2], torch.tensor([1e4]), totals[1::2]]))
    assert plain.std < slipped.std < 2 * plain.std


def test_scores_that_become_larger_for_good_are_followed() -> None:
    scale = RunningScale()
    scale.update(torch.tensor([0.0, 1e-3] * 16))
    scale.update(torch.tensor([0.0, 1.0] * 64))
    assert scale.std == pytest.approx(0.5, rel=0.2)


def test_equal_totals_do_not_blow_rewards_up() -> None:
    scale = RunningScale()
    scale.update(torch.tensor([2.0, 2.0, 2.0]))
    assert scale.std == 1.0


def test_small_differences_of_totals_are_differences() -> None:
    scale = RunningScale()
    scale.update(torch.tensor([0.0, 2e-5]))
    assert scale.std == pytest.approx(1e-5)


def test_adaptive_kl_control_raises_beta_above_the_target_and_lowers_it_below() -> None:
    control = KLController(beta=0.1, target=6.0, horizon=100)
    control.update(kl=60.0, samples=10)
    assert control.beta == pytest.approx(0.1 * 1.02)
    control.update(kl=5.4, samples=10)
    assert control.beta == pytest.approx(0.1 * 1.02 * 0.99)


def test_fixed_kl_control_stays() -> None:
    control = KLController(beta=0.1)
    control.update(kl=60.0, samples=10)
    assert control.beta == 0.1


def test_adaptive_kl_control_never_pays_for_kl() -> None:
    control = KLController(beta=0.05, target=6, horizon=100)
    control.update(0.0, samples=512)
    assert 0 < control.beta < 0.05
    before = control.beta
    control.update(math.nan, samples=512)
    assert control.beta == before


def test_adaptive_kl_control_over_many_steps() -> None:
    dice = random.Random(0)
    control, betas = KLController(0.1, target=6.0, horizon=50), [0.1]
    for _ in range(30):
        kl, samples = dice.uniform(-1, 20), dice.randint(1, 9)
        control.update(kl, samples)
        error = (kl - 6.0) / 6.0
        betas.append(betas[-1] * (1 + max(-0.2, min(0.2, error)) * samples / 50))
    assert control.beta == pytest.approx(betas[-1])
    assert any(after > before for before, after in pairwise(betas))
