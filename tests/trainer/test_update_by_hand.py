"""One update of a policy that is a table of numbers: the losses, the limits on the KL, and what is rolled back."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from torch import Tensor, nn

from text2grad.distributed.learner import IDLE, Learner, MicroBatch
from text2grad.models.batching import TokenBatch
from text2grad.models.packing import pad_rows
from text2grad.models.policy import Scores
from text2grad.schema import Example
from text2grad.trainer.batch import Batch, Rollout
from text2grad.trainer.config import PolicySettings
from text2grad.trainer.update import UpdateResult, update

OLD = torch.tensor([[-1.0, -2.0], [-3.0, 0.0], [-1.0, -1.0]], dtype=torch.double)
MASK = torch.tensor([[1.0, 1.0], [1.0, 0.0], [0.0, 0.0]], dtype=torch.double)  # the last sample's critique failed
ADVANTAGES = torch.tensor([[3.0, -1.5], [0.5, 0.0], [0.0, 0.0]], dtype=torch.double)
ROLLOUT = Rollout(
    prompts=[[0], [1], [2]],
    completions=[[7, 7], [7], [7, 7]],
    ended=[True] * 3,
    offsets=[[]] * 3,
    examples=[Example(id=str(i), prompt="") for i in range(3)],
)
MEANS = ("policy_loss", "value_loss", "entropy", "clip_fraction", "approx_kl", "grad_norm")


class Numbers(nn.Module):
    """A log-probability, an entropy and a value for each token; the prompt is the index of the sample."""

    share_prompts = False

    def __init__(self) -> None:
        super().__init__()
        self.logprobs = nn.Parameter(OLD.clone())
        self.entropy, self.values = (nn.Parameter(torch.zeros_like(OLD)) for _ in range(2))
        self.calls: list[dict[str, Any]] = []

    def forward(self, rows: TokenBatch, temperature: float, entropy_gradient: bool = False) -> Scores:
        samples = rows.ids[rows.rows, 0]
        self.calls.append(
            {
                "samples": sorted(set(samples.tolist())),
                "temperature": temperature,
                "entropy_gradient": entropy_gradient,
                "training": self.training,
            }
        )
        tables = (self.logprobs, self.entropy, self.values)
        return Scores(*(rows.scatter(table[samples, rows.token_indices]) for table in tables))


def batch_of(**fields: Any) -> Batch:
    given = {
        "mask": MASK,
        "old_logprobs": OLD,
        "reference_logprobs": OLD + 1.0,  # without a coefficient it does not count
        "old_values": torch.zeros_like(OLD),
        "advantages": ADVANTAGES,
        "returns": torch.zeros_like(OLD),
        "explained_variance": math.nan,
    }
    return Batch(**(given | fields))


def updated(
    policy: Numbers, batch: Batch | None = None, learner_type: type[Learner] = Learner, **settings: Any
) -> UpdateResult:
    """Update with a learning rate of 1: a token's log-probability changes by its advantage / 3 valid tokens."""
    defaults = {"max_grad_norm": 1e6, "epsilon": 1e6, "epsilon_value": 1e6, "vf_coef": 0.0, "beta": 0.0}
    args = PolicySettings.model_validate(defaults | settings)
    learner = learner_type(policy, torch.optim.SGD(policy.parameters(), lr=1.0), Accelerator(cpu=True))
    return update(learner, ROLLOUT, batch or batch_of(), args)


def kl(change: Tensor) -> float:
    """The mean of exp(d) - 1 - d over the valid tokens: (0.718 + 0.107 + 0.015) / 3 for a step."""
    return float(((change.exp() - 1 - change) * MASK).sum() / 3)


def test_one_step_adds_a_third_of_each_advantage() -> None:
    policy = Numbers()
    result = updated(policy)
    torch.testing.assert_close(policy.logprobs.detach(), OLD + ADVANTAGES / 3)
    assert result.error is None
    assert result.stats == {
        "policy_loss": pytest.approx(-2 / 3),
        "value_loss": 0,
        "entropy": 0,
        "clip_fraction": 0,
        "approx_kl": pytest.approx(0),
        "grad_norm": pytest.approx(math.sqrt(3**2 + 1.5**2 + 0.5**2) / 3),
        "num_updates": 1,
        "skipped": 0,
    }
    assert all(parameter.grad is None for parameter in policy.parameters())


def test_importance_weights_scale_the_policy_loss_of_each_token() -> None:
    weights = torch.tensor([[0.5, 2.0], [1.5, 9.0], [9.0, 9.0]], dtype=torch.double)
    policy = Numbers()
    result = updated(policy, batch_of(importance_weights=weights))
    torch.testing.assert_close(policy.logprobs.detach(), OLD + weights * ADVANTAGES / 3)
    assert result.stats["policy_loss"] == pytest.approx((-1.5 + 3 - 0.75) / 3)


def test_values_entropy_and_kl_have_their_coefficients() -> None:
    policy = Numbers()
    batch = batch_of(
        advantages=0 * OLD, returns=OLD, reference_logprobs=OLD + math.log(2), kl_coef=0.5, old_values=0 * OLD
    )
    result = updated(policy, batch, vf_coef=0.25, entropy_coef=0.75, epsilon_value=2.5)
    # Value -> V + vf_coef * (R - V) / 3; the entropy rises by its coefficient; d/dlogp of k3 is 1 - exp(d) = -1
    torch.testing.assert_close(policy.values.detach(), 0.25 * OLD * MASK / 3)
    torch.testing.assert_close(policy.entropy.detach(), 0.75 * MASK / 3)
    torch.testing.assert_close(policy.logprobs.detach(), OLD + 0.5 * MASK / 3)
    assert result.stats["value_loss"] == pytest.approx(0.5 * (1 + 4 + 9) / 3)


def test_the_policy_is_called_for_valid_samples_in_training_mode() -> None:
    policy = Numbers().eval()
    updated(policy, temperature=0.7, entropy_coef=0.1, num_iterations=2, max_tokens_per_batch=1)
    call = {"temperature": 0.7, "entropy_gradient": True, "training": True}
    assert sorted(policy.calls, key=lambda c: c["samples"]) == [call | {"samples": [i]} for i in (0, 0, 1, 1)]
    guarded = Numbers()
    updated(guarded, temperature=0.7, rollback_kl=100.0)
    assert [c["temperature"] for c in guarded.calls] == [0.7, 0.7]
    plain = Numbers()
    updated(plain)
    assert [(c["samples"], c["entropy_gradient"]) for c in plain.calls] == [([0, 1], False)]


class WithIdlePass(Learner):
    """A process with fewer samples than the others: it takes part in another pass, of which nothing counts."""

    def micro_batches(self, *arguments: Any) -> list[MicroBatch]:
        idle = pad_rows(ROLLOUT.prompts, ROLLOUT.completions, [IDLE], torch.device("cpu"))
        return [([], idle), *super().micro_batches(*arguments)]


def test_an_idle_pass_contributes_nothing() -> None:
    plain, idle = Numbers(), Numbers()
    results = [updated(plain, rollback_kl=9.0), updated(idle, learner_type=WithIdlePass, rollback_kl=9.0)]
    assert [len(policy.calls) for policy in (plain, idle)] == [2, 4]
    torch.testing.assert_close(idle.logprobs, plain.logprobs, rtol=0, atol=0)
    assert results[1].stats == pytest.approx(results[0].stats)


def test_without_a_valid_sample_there_is_no_update() -> None:
    policy = Numbers()
    result = updated(policy, batch_of(mask=0 * MASK), rollback_kl=1.0)
    assert policy.calls == []
    assert result.error is None
    assert list(result.stats) == [*MEANS, "num_updates", "skipped"]
    assert all(math.isnan(result.stats[name]) for name in MEANS)
    assert (result.stats["num_updates"], result.stats["skipped"]) == (0, 0)


def test_gradients_are_clipped_and_reported_before() -> None:
    policy = Numbers()
    result = updated(policy, max_grad_norm=0.1)
    change = policy.logprobs.detach() - OLD
    assert change.norm().item() == pytest.approx(0.1, rel=1e-4)
    assert result.stats["grad_norm"] > 1


def test_early_stop_is_above_the_limit_only_and_keeps_the_steps_before() -> None:
    reached = kl(ADVANTAGES / 3)
    stopped, within = Numbers(), Numbers()
    result = updated(stopped, num_iterations=3, early_stop_kl=reached * 0.999)
    assert (result.stats["num_updates"], result.stats["skipped"], result.error) == (1, 0, None)
    assert result.stats["approx_kl"] == pytest.approx(reached)
    torch.testing.assert_close(stopped.logprobs.detach(), OLD + ADVANTAGES / 3)
    assert updated(within, num_iterations=2, early_stop_kl=result.stats["approx_kl"]).stats["num_updates"] == 2


def test_rollback_is_above_the_limit_only_and_undoes_all_steps() -> None:
    reached = kl(ADVANTAGES / 3)
    free, at_limit, back = Numbers(), Numbers(), Numbers()
    result = updated(free, rollback_kl=100.0)
    assert result.stats["approx_kl"] == pytest.approx(reached)
    assert (result.error, result.stats["skipped"], result.stats["num_updates"]) == (None, 0, 1)
    exactly = result.stats["approx_kl"]
    assert updated(at_limit, rollback_kl=exactly).error is None
    torch.testing.assert_close(at_limit.logprobs, free.logprobs)
    undone = updated(back, rollback_kl=0.25)
    assert undone.error == "the update moved the policy by 0.28 nats per token, more than rollback_kl (0.25)"
    assert (undone.stats["skipped"], undone.stats["num_updates"]) == (1, 0)
    assert undone.stats["approx_kl"] == pytest.approx(reached)
    assert torch.equal(back.logprobs, OLD)


def test_rollback_within_the_passes_ends_them() -> None:
    policy = Numbers()
    result = updated(policy, num_iterations=3, rollback_kl=0.25)
    assert len(policy.calls) == 2  # the second pass finds the policy too far away
    assert (result.stats["skipped"], result.stats["num_updates"]) == (1, 0)
    assert torch.equal(policy.logprobs, OLD)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"advantages": ADVANTAGES * math.nan}, "the update's policy_loss is nan"),
        ({"advantages": ADVANTAGES.abs() * math.inf}, "the update's policy_loss is nan"),
        ({"returns": torch.tensor([[math.inf, 0.0], [0.0, 0.0], [0.0, 0.0]])}, "the update's value_loss is inf"),
    ],
)
def test_a_loss_that_is_not_finite_makes_no_step(fields: dict[str, Tensor], error: str) -> None:
    policy = Numbers()
    result = updated(policy, batch_of(**fields), num_iterations=2, vf_coef=0.1)
    assert result.error == error
    assert (result.stats["skipped"], result.stats["num_updates"]) == (1, 0)
    assert len(policy.calls) == 1
    assert torch.equal(policy.logprobs, OLD)


@pytest.mark.parametrize(("rollback", "kept", "after"), [(None, 1, OLD + ADVANTAGES / 3), (100.0, 0, OLD)])
def test_a_gradient_that_is_not_finite_ends_the_passes(rollback: float | None, kept: int, after: Tensor) -> None:
    policy = Numbers()
    policy.logprobs.register_hook(lambda gradient: gradient + (math.inf if len(policy.calls) == 2 else 0))
    result = updated(policy, num_iterations=3, rollback_kl=rollback)
    assert result.error == "the update's grad_norm is inf"
    assert (result.stats["skipped"], result.stats["num_updates"]) == (1, kept)
    torch.testing.assert_close(policy.logprobs.detach(), after)
    assert all(parameter.grad is None for parameter in policy.parameters())
