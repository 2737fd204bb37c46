import math

import pytest
import torch

from text2grad.trainer.advantage import KLControl, RunningScale, explained_variance, gae, kl_per_token, normalize


def test_gae_spreads_a_late_blame_backwards() -> None:
    rewards = torch.tensor([[0.0, 0.0, -1.0]])
    advantages, _ = gae(rewards, values=torch.zeros(1, 3), mask=torch.ones(1, 3), gamma=1.0, lam=0.5)
    assert advantages.tolist() == [[-0.25, -0.5, -1.0]]


def test_gae_by_hand_with_values() -> None:
    # delta_1 = 2 - 1 = 1; delta_0 = 1 + 0.5 * 1 - 0.5 = 1; A_0 = 1 + 0.5 * 0.5 * 1 = 1.25
    advantages, returns = gae(
        torch.tensor([[1.0, 2.0]]), torch.tensor([[0.5, 1.0]]), torch.ones(1, 2), gamma=0.5, lam=0.5
    )
    assert advantages.tolist() == [[1.25, 1.0]]
    assert returns.tolist() == [[1.75, 2.0]]


def test_gamma_zero_is_local_credit() -> None:
    rewards = torch.tensor([[0.0, -1.0, 0.5]])
    advantages, _ = gae(rewards, torch.zeros(1, 3), torch.ones(1, 3), gamma=0.0, lam=0.95)
    assert advantages.tolist() == rewards.tolist()


def test_gae_stops_at_the_end_of_each_row() -> None:
    rewards = torch.tensor([[1.0, 9.0, 9.0], [1.0, 1.0, 1.0]])
    values = torch.full((2, 3), 0.5)
    mask = torch.tensor([[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    advantages, returns = gae(rewards, values, mask, gamma=1.0, lam=1.0)
    assert advantages.tolist() == [[0.5, 0.0, 0.0], [2.5, 1.5, 0.5]]
    assert returns.tolist() == [[1.0, 0.0, 0.0], [3.0, 2.0, 1.0]]


def test_scaling_keeps_neutral_tokens_at_zero_and_whitening_does_not() -> None:
    advantages = torch.tensor([[0.0, 0.0, 0.0, -2.0]])
    mask = torch.ones(1, 4)
    deviation = math.sqrt(0.75)  # mean -0.5, squares (3 * 0.25 + 2.25) / 4
    assert normalize(advantages, mask, "scale")[0].tolist() == pytest.approx([0, 0, 0, -2 / deviation], abs=1e-4)
    assert normalize(advantages, mask, "whiten")[0, 0] == pytest.approx(0.5 / deviation, abs=1e-4)
    assert normalize(advantages, mask, "none").tolist() == advantages.tolist()


def test_normalisation_ignores_masked_tokens() -> None:
    advantages = torch.tensor([[1.0, -1.0, 100.0]])
    mask = torch.tensor([[1.0, 1.0, 0.0]])
    assert normalize(advantages, mask, "scale")[0].tolist() == pytest.approx([1.0, -1.0, 0.0], abs=1e-4)


def test_running_scale_matches_the_population_deviation_and_never_shifts() -> None:
    scale = RunningScale()
    assert scale.std == 1.0
    scale.update(torch.tensor([1.0, 2.0]))
    scale.update(torch.tensor([6.0]))
    assert scale.std == pytest.approx(math.sqrt(14 / 3))  # mean 3: (4 + 1 + 9) / 3


def test_equal_totals_do_not_blow_rewards_up() -> None:
    scale = RunningScale()
    scale.update(torch.tensor([2.0, 2.0, 2.0]))
    assert scale.std == 1.0


def test_adaptive_kl_control_raises_beta_above_the_target_and_lowers_it_below() -> None:
    control = KLControl(beta=0.1, target=6.0, horizon=100)
    control.update(kl=60.0, samples=10)
    assert control.beta == pytest.approx(0.1 * 1.02)
    control.update(kl=5.4, samples=10)
    assert control.beta == pytest.approx(0.1 * 1.02 * 0.99)


def test_fixed_kl_control_stays() -> None:
    control = KLControl(beta=0.1)
    control.update(kl=60.0, samples=10)
    assert control.beta == 0.1


def test_kl_and_explained_variance() -> None:
    assert kl_per_token(torch.tensor([-1.0]), torch.tensor([-3.0])).tolist() == [2.0]
    returns, mask = torch.tensor([[1.0, 3.0, 50.0]]), torch.tensor([[1.0, 1.0, 0.0]])
    assert explained_variance(returns, returns, mask) == 1.0
    assert explained_variance(torch.zeros(1, 3), returns, mask) == 0.0
    assert math.isnan(explained_variance(returns, torch.ones(1, 3), mask))


def test_advantages_that_are_all_alike_do_not_become_huge() -> None:
    same = torch.full((2, 3), -0.4)
    torch.testing.assert_close(normalize(same, torch.ones(2, 3), "scale"), torch.full((2, 3), -10.0), atol=1e-3, rtol=0)
    assert not normalize(same, torch.ones(2, 3), "whiten").any()


def test_adaptive_kl_control_never_pays_for_kl() -> None:
    control = KLControl(beta=0.05, target=6, horizon=100)
    control.update(0.0, samples=512)
    assert 0 < control.beta < 0.05
    before = control.beta
    control.update(math.nan, samples=512)
    assert control.beta == before
