import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from support import MakeTrainer, Seen, weights

from text2grad import Text2GradTrainer
from text2grad.distributed.learner import Learner
from text2grad.errors import UserError
from text2grad.models.policy import Scores
from text2grad.trainer.batch import Rollout, RolloutRewards, make_batch
from text2grad.trainer.callbacks import Callback, Metrics
from text2grad.trainer.update import UpdateResult, update


def span_rewards(tokens: torch.Tensor, valid: torch.Tensor | None = None) -> RolloutRewards:
    """Token rewards of feedback without a score."""
    valid = torch.tensor([True] * len(tokens)) if valid is None else valid
    return RolloutRewards(tokens, torch.full((len(tokens),), math.nan), valid)


def one_update(trainer: Text2GradTrainer) -> UpdateResult:
    """An update on the first step's completions with advantages of +1 and -1 by turns."""
    rollout = trainer.rollout(1)
    scores = trainer.score(rollout)
    batch = make_batch(rollout, span_rewards(rollout.mask), scores, scores, trainer.args, trainer.state)
    batch.advantages.copy_(rollout.mask)
    batch.advantages[:, 1::2] *= -1
    return update(Learner(trainer.policy, trainer.optimizer, trainer.accelerator), rollout, batch, trainer.args)


def test_the_first_pass_is_on_policy_and_later_ones_are_not(make_trainer: MakeTrainer) -> None:
    once, twice = (one_update(make_trainer(f"{n}", num_iterations=n)).stats for n in (1, 2))
    assert once["approx_kl"] == pytest.approx(0, abs=1e-6)
    assert once["clip_fraction"] == 0
    assert twice["approx_kl"] > 1e-4
    assert (once["num_updates"], twice["num_updates"]) == (1, 2)
    assert 0 < once["entropy"] <= math.log(322)  # uniform over the tiny model's vocabulary


def test_early_stop_kl_ends_the_passes_and_keeps_earlier_updates(make_trainer: MakeTrainer) -> None:
    single, early = make_trainer("single"), make_trainer("early", num_iterations=4, early_stop_kl=1e-4)
    one_update(single)
    result = one_update(early)
    assert result.stats["num_updates"] == 1
    assert result.error is None
    torch.testing.assert_close(weights(early), weights(single), rtol=0, atol=0)


def test_rollback_kl_rolls_the_update_back_and_says_so(make_trainer: MakeTrainer) -> None:
    for passes in (1, 3):
        trainer = make_trainer(f"{passes}", num_iterations=passes, rollback_kl=1e-4)
        before = weights(trainer)
        result = one_update(trainer)
        assert result.stats["skipped"] == 1
        assert result.stats["num_updates"] == 0
        assert "nats per token, more than rollback_kl (0.0001)" in str(result.error)
        torch.testing.assert_close(weights(trainer), before, rtol=0, atol=0)


def test_within_rollback_kl_the_update_is_the_usual_one(make_trainer: MakeTrainer) -> None:
    plain, guarded = (
        make_trainer("plain", num_iterations=2),
        make_trainer("guarded", num_iterations=2, rollback_kl=100.0),
    )
    for trainer in (plain, guarded):
        assert one_update(trainer).error is None
    torch.testing.assert_close(weights(plain), weights(guarded), rtol=0, atol=0)


def test_an_entropy_bonus_raises_the_entropy(make_trainer: MakeTrainer) -> None:
    after = []
    for coefficient in (0.0, 10.0):
        trainer = make_trainer(f"{coefficient}", lora=False, entropy_coef=coefficient, learning_rate=1e-3)
        one_update(trainer)
        after.append(float(trainer.score(trainer.rollout(1)).entropy.mean()))
    assert after[1] > after[0]


def test_estimators_without_a_value_head_leave_it_alone(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(estimator="reinforce")
    metrics, _ = trainer.step(1)
    assert math.isnan(metrics["explained_variance"])
    assert not any(p.any() for name, p in weights(trainer).items() if name.startswith("value_head"))


def test_truncated_completions_can_be_masked(make_trainer: MakeTrainer) -> None:
    """No completion of the tiny model ends within ten tokens, so nothing is left to learn from."""
    trainer = make_trainer(mask_truncated_completions=True)
    before = weights(trainer)
    metrics, _ = trainer.step(1)
    assert metrics["completions/clipped_ratio"] == 1
    assert metrics["num_updates"] == 0
    torch.testing.assert_close(weights(trainer), before, rtol=0, atol=0)


def test_a_run_whose_updates_keep_failing_stops_and_keeps_its_checkpoint(make_trainer: MakeTrainer) -> None:
    seen = Seen()
    trainer = make_trainer(max_steps=9, rollback_kl=1e-9, callbacks=[seen])
    before = weights(trainer)
    with pytest.raises(UserError, match="3 consecutive updates were skipped; the last good checkpoint is kept"):
        trainer.train()
    assert [len(metrics["warnings"]) for metrics in seen.steps] == [1, 1, 1]
    assert trainer.state.skipped_updates == 3
    torch.testing.assert_close(weights(trainer), before, rtol=0, atol=0)
    resumed = make_trainer(max_steps=9, rollback_kl=1e-9)
    resumed.start(resume=True)
    assert resumed.state.step == 0


def test_stop_on_hacking_ends_the_run_and_a_resumed_one_remembers(make_trainer: MakeTrainer) -> None:
    class Gamed(Callback):
        def on_step(self, metrics: Metrics) -> None:
            if metrics["step"] == 2:
                trainer.monitor.seen.add("completions/mean_length")

    trainer = make_trainer(max_steps=4, stop_on_hacking=True, callbacks=[Gamed()])
    trainer.train()
    assert trainer.state.step == 2
    resumed = make_trainer(max_steps=4, stop_on_hacking=True)
    resumed.start(resume=True)
    assert len(resumed.monitor.rewards) == 2


def test_a_reward_beyond_the_clip_counts_as_the_clip(make_trainer: MakeTrainer) -> None:
    settings = {"estimator": "reinforce", "lam": 0.0, "advantage_normalization": "none", "reward_clip": 1.5}
    trainer = make_trainer(beta=0.0, **settings)
    rollout = trainer.rollout(1)
    scores = trainer.score(rollout)
    rewards = rollout.mask * 0
    rewards[0, :3] = torch.tensor([4.0, -7.0, 1.0])
    rewards[1, 0] = 2.0  # totals -2, 2, 0, 0: a deviation of sqrt(2)
    batch = make_batch(rollout, span_rewards(rewards), scores, scores, trainer.args, trainer.state)
    assert batch.advantages[0, :3].tolist() == pytest.approx([1.5, -1.5, 1 / math.sqrt(2)])


def test_a_loss_that_is_not_finite_says_so(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer()
    rollout = trainer.rollout(1)
    scores = trainer.score(rollout)
    batch = make_batch(rollout, span_rewards(rollout.mask), scores, scores, trainer.args, trainer.state)
    batch.advantages[0, 0] = math.nan
    result = update(Learner(trainer.policy, trainer.optimizer, trainer.accelerator), rollout, batch, trainer.args)
    assert result.error == "the update's policy_loss is nan"
    assert result.stats["skipped"] == 1


EVERYTHING_IN_THE_LOSS = {
    "per_device_train_batch_size": 8,
    "num_generations": 4,
    "num_iterations": 2,
    "entropy_coef": 0.1,
    "vf_coef": 0.3,
    "kl_placement": "loss",
    "max_grad_norm": 1e6,
    "epsilon": 0.01,
}
LAYOUTS: dict[str, dict[str, Any]] = {
    "a row a micro-batch": {"share_prompts": False, "max_tokens_per_batch": 1},
    "sorted by budget": {"share_prompts": False, "max_tokens_per_batch": 90},
    "shared": {"share_prompts": True, "max_tokens_per_batch": 10**6},
    "shared and split": {"share_prompts": True, "max_tokens_per_batch": 64},
}


def replayed(trainer: Text2GradTrainer, rollout: Rollout) -> tuple[Scores, Scores, dict[str, float], Any, Any]:
    """An update on given completions, the second failed: (old, reference, stats, gradients of each pass, weights)."""
    with torch.no_grad():
        generator = torch.Generator().manual_seed(1)
        trainer.policy.value_head.weight.normal_(generator=generator)
        for name, parameter in trainer.policy.trainable().items():  # away from the reference
            if "value_head" not in name:
                parameter.add_(0.02 * torch.randn(parameter.shape, generator=generator))
    gradients: list[dict[str, torch.Tensor]] = []
    trainer.optimizer.register_step_pre_hook(
        lambda *_: gradients.append({n: p.grad.clone() for n, p in trainer.policy.trainable().items()})  # type: ignore
    )
    old, reference = trainer.score(rollout), trainer.score(rollout, reference=True)
    rewards = rollout.mask * torch.randn(rollout.mask.shape, generator=torch.Generator().manual_seed(2))
    valid = torch.tensor([True, False, True, True, True, True, True, True])
    batch = make_batch(rollout, span_rewards(rewards, valid), old, reference, trainer.args, trainer.state)
    learner = Learner(trainer.policy, trainer.optimizer, trainer.accelerator)
    result = update(learner, rollout, batch, trainer.args)
    assert len(gradients) == 2
    return old, reference, result.stats, gradients, weights(trainer)


@pytest.mark.parametrize("lora", [True, False])
def test_padded_sorted_and_shared_rows_give_the_same_update(make_trainer: MakeTrainer, lora: bool) -> None:
    rate = {"learning_rate": 1e-3, "lora": lora}
    padded = make_trainer("padded", share_prompts=False, max_tokens_per_batch=10**6, **EVERYTHING_IN_THE_LOSS, **rate)
    drawn = padded.rollout(1)
    shorter = [ids[: 1 + 2 * i % 9] for i, ids in enumerate(drawn.completions)]
    rollout = replace(drawn, completions=shorter, sampled_logprobs=None)
    expected = replayed(padded, rollout)
    assert expected[2]["clip_fraction"] > 0
    for name, layout in LAYOUTS.items():
        trainer = make_trainer(name, **EVERYTHING_IN_THE_LOSS, **layout, **rate)
        assert trainer.policy.share_prompts is layout["share_prompts"]
        for ours, theirs in zip(replayed(trainer, rollout), expected, strict=True):
            torch.testing.assert_close(
                ours, theirs, rtol=1e-5, atol=1e-5, msg=lambda said, name=name: f"{name}: {said}"
            )
