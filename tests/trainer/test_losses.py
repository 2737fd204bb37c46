import math

import pytest
import torch

from text2grad.trainer.losses import (
    approximate_kl,
    clipped_policy_loss,
    clipped_value_loss,
    contrastive_loss,
    correction_loss,
    mean_over_tokens,
    truncated_importance_weights,
)

# exp(trained - sampled): 1, 1/2, 4; the last token is not valid
TRAINED = torch.tensor([[-1.0, -2.0 - math.log(2), -1.0, -9.0]])
SAMPLED = torch.tensor([[-1.0, -2.0, -1.0 - math.log(4), 0.0]])


def test_policy_loss_by_hand() -> None:
    # ratios 1.5, 1.5, 0.5, 1.0 with epsilon 0.2
    old = torch.zeros(1, 4)
    new = torch.tensor([[math.log(1.5), math.log(1.5), math.log(0.5), 0.0]])
    advantages = torch.tensor([[1.0, -1.0, -1.0, 9.0]])
    mask = torch.tensor([[1.0, 1.0, 1.0, 0.0]])
    loss, clipped = clipped_policy_loss(new, old, advantages, mask, epsilon=0.2)
    # min(1.5, 1.2) + min(-1.5, -1.2) + min(-0.5, -0.8) = 1.2 - 1.5 - 0.8
    assert loss.item() == pytest.approx(1.1)
    assert clipped.item() == 2


def test_importance_weights_multiply_each_token() -> None:
    logprobs = torch.tensor([[math.log(1.5), math.log(1.5), 0.0]], requires_grad=True)
    advantages, mask = torch.tensor([[1.0, -1.0, 2.0]]), torch.ones(1, 3)
    weights = torch.tensor([[2.0, 0.5, 0.25]])
    loss, clipped = clipped_policy_loss(logprobs, torch.zeros(1, 3), advantages, mask, 0.2, weights)
    loss.backward()
    # 2 * 1.2 - 0.5 * 1.5 + 0.25 * 2; the first token is clipped, so it gets no gradient
    assert loss.item() == pytest.approx(-2.15)
    assert logprobs.grad is not None
    assert logprobs.grad[0].tolist() == pytest.approx([0.0, 0.75, -0.5])
    assert clipped.item() == 1


def test_gradient_on_policy_is_the_natural_language_gradient() -> None:
    logprobs = torch.tensor([[-1.0, -2.0, -3.0]], requires_grad=True)
    rewards = torch.tensor([[0.0, -1.0, 0.5]])
    loss, _ = clipped_policy_loss(logprobs, logprobs.detach(), rewards, torch.ones(1, 3), epsilon=0.2)
    loss.backward()
    assert logprobs.grad is not None
    assert (-logprobs.grad).tolist() == rewards.tolist()


def test_value_loss_by_hand() -> None:
    values, old = torch.tensor([[1.0, 0.1, 5.0]]), torch.zeros(1, 3)
    returns, mask = torch.tensor([[1.0, 1.0, 0.0]]), torch.tensor([[1.0, 1.0, 0.0]])
    # first: unclipped (1-1)^2 = 0, clipped (0.2-1)^2 = 0.64; second: (0.1-1)^2 = 0.81 either way
    assert clipped_value_loss(values, old, returns, mask, epsilon=0.2).item() == pytest.approx(0.5 * (0.64 + 0.81))


def test_approximate_kl_by_hand() -> None:
    old = torch.zeros(1, 3)
    new = torch.tensor([[math.log(2), math.log(0.5), 7.0]])
    mask = torch.tensor([[1.0, 1.0, 0.0]])
    # 2 - 1 - log 2, and 0.5 - 1 + log 2
    assert approximate_kl(new, old, mask).item() == pytest.approx(0.5, abs=1e-6)


def test_approximate_kl_has_the_divergence_as_its_mean() -> None:
    p, q = torch.tensor([0.5, 0.3, 0.2], dtype=torch.double), torch.tensor([0.2, 0.2, 0.6], dtype=torch.double)
    exact = (p * (p / q).log()).sum()
    estimate = sum(p[i] * approximate_kl(q[i].log(), p[i].log(), torch.ones(())) for i in range(3))
    torch.testing.assert_close(torch.as_tensor(estimate), exact)


def test_importance_weights_by_hand() -> None:
    assert truncated_importance_weights(TRAINED, SAMPLED, clip_max=2.0)[0, :3].tolist() == pytest.approx(
        [1.0, 0.5, 2.0]
    )
    assert truncated_importance_weights(TRAINED, SAMPLED)[0, :3].tolist() == pytest.approx([1.0, 0.5, 4.0])


def test_importance_weights_carry_no_gradient() -> None:
    assert not truncated_importance_weights(TRAINED.clone().requires_grad_(), SAMPLED, clip_max=2.0).requires_grad


def test_a_token_that_is_impossible_for_the_sampler_has_the_largest_weight() -> None:
    assert truncated_importance_weights(torch.tensor([[-3.0]]), torch.tensor([[-math.inf]]), clip_max=2.0).item() == 2.0


def test_mean_over_tokens_by_hand() -> None:
    values, mask = torch.tensor([[2.0, 4.0, 9.0], [3.0, 5.0, 5.0]]), torch.tensor([[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    assert mean_over_tokens(values, mask).tolist() == [3.0, 0.0]


def test_correction_loss_by_hand() -> None:
    logprobs = torch.tensor([[0.45, 0.225], [0.3, 0.7]]).log().requires_grad_()
    mask = torch.tensor([[1.0, 1.0], [1.0, 0.0]])
    loss = correction_loss(logprobs, mask, torch.tensor([1.0, 0.5]), target_probability=0.9)
    # the mean of log 2 and log 4, and half of log 3
    assert loss.item() == pytest.approx(1.5 * math.log(2) + 0.5 * math.log(3))
    loss.backward()
    assert logprobs.grad is not None
    assert logprobs.grad.tolist() == [[-0.5, -0.5], [-0.5, 0.0]]


def test_a_correction_that_has_the_target_probability_teaches_nothing() -> None:
    logprobs = torch.tensor([[0.95, 0.1]]).log().requires_grad_()
    loss = correction_loss(logprobs, torch.ones(1, 2), torch.ones(1), target_probability=0.9)
    loss.backward()
    assert logprobs.grad is not None
    assert logprobs.grad[0].tolist() == [0.0, -0.5]
    assert loss.item() == pytest.approx(math.log(9) / 2)


def test_robust_correction_loss_by_hand() -> None:
    """With a robustness of 1/2: twice the difference of the square roots, and a gradient of -sqrt(p)."""
    logprobs = torch.tensor([[0.36, 0.01], [0.25, 0.7]]).log().requires_grad_()
    mask = torch.tensor([[1.0, 1.0], [1.0, 0.0]])
    weights = torch.tensor([1.0, 0.5])
    loss = correction_loss(logprobs, mask, weights, target_probability=0.81, robustness=0.5)
    # 2 * (.9 - .6) and 2 * (.9 - .1), their mean; and half of 2 * (.9 - .5)
    assert loss.item() == pytest.approx((0.6 + 1.6) / 2 + 0.5 * 0.8)
    loss.backward()
    assert logprobs.grad is not None
    assert logprobs.grad.flatten().tolist() == pytest.approx([-0.3, -0.05, -0.25, 0.0])


def test_the_robust_correction_loss_is_the_likelihood_in_the_limit_and_stops_at_the_target() -> None:
    logprobs, mask = torch.tensor([[0.45, 0.95]]).log(), torch.ones(1, 2)
    plain, nearly = (correction_loss(logprobs, mask, torch.ones(1), 0.9, q).item() for q in (0.0, 1e-7))
    assert nearly == pytest.approx(plain, rel=1e-5)
    assert correction_loss(logprobs[:, 1:], mask[:, 1:], torch.ones(1), 0.9, 0.5).item() == 0


def test_contrastive_loss_by_hand() -> None:
    corrected, written = torch.tensor([0.25, 0.1]).log().requires_grad_(), torch.tensor([0.75, 0.1]).log()
    loss = contrastive_loss(corrected, written, torch.tensor([1.0, 0.5]))
    # sigmoid(log a - log b) = a / (a + b): 1/4 and 1/2
    assert loss.item() == pytest.approx(math.log(4) + 0.5 * math.log(2))
    loss.backward()
    assert corrected.grad is not None
    assert corrected.grad.tolist() == pytest.approx([-0.75, -0.25])
