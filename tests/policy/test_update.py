import math

import pytest
import torch
from support import MakeTrainer, Seen, weights

from text2grad import Text2GradTrainer
from text2grad.errors import UserError
from text2grad.policy.callbacks import Callback, Metrics
from text2grad.policy.update import Learner, Outcome, update


def one_update(trainer: Text2GradTrainer) -> Outcome:
    """An update on the first step's answers with advantages of +1 and -1 by turns."""
    rollout = trainer.rollout(1)
    scores = trainer.score(rollout)
    batch = trainer.advantages(rollout, rollout.mask, torch.tensor([True] * 4), scores, scores)
    batch.advantages.copy_(rollout.mask)
    batch.advantages[:, 1::2] *= -1
    return update(Learner(trainer.policy, trainer.optimizer, trainer.accelerator), rollout, batch, trainer.args)


def test_the_first_pass_is_on_policy_and_later_ones_are_not(make_trainer: MakeTrainer) -> None:
    once, twice = (one_update(make_trainer(f"{n}", num_iterations=n)).stats for n in (1, 2))
    assert once["approx_kl"] == pytest.approx(0, abs=1e-6)
    assert once["clip_fraction"] == 0
    assert twice["approx_kl"] > 1e-4
    assert (once["passes"], twice["passes"]) == (1, 2)
    assert 0 < once["entropy"] <= math.log(322)  # uniform over the tiny model's vocabulary


def test_target_kl_ends_the_passes_and_keeps_what_was_done(make_trainer: MakeTrainer) -> None:
    single, early = make_trainer("single"), make_trainer("early", num_iterations=4, target_kl=1e-4)
    one_update(single)
    outcome = one_update(early)
    assert outcome.stats["passes"] == 1
    assert outcome.broken is None
    torch.testing.assert_close(weights(early), weights(single), rtol=0, atol=0)


def test_an_explosion_undoes_the_update_and_says_so(make_trainer: MakeTrainer) -> None:
    for passes in (1, 3):
        trainer = make_trainer(f"{passes}", num_iterations=passes, max_kl=1e-4)
        before = weights(trainer)
        outcome = one_update(trainer)
        assert outcome.stats["skipped"] == 1
        assert outcome.stats["passes"] == 0
        assert "nats a token, more than max_kl (0.0001)" in str(outcome.broken)
        torch.testing.assert_close(weights(trainer), before, rtol=0, atol=0)


def test_within_max_kl_the_update_is_the_usual_one(make_trainer: MakeTrainer) -> None:
    plain, guarded = make_trainer("plain", num_iterations=2), make_trainer("guarded", num_iterations=2, max_kl=100.0)
    for trainer in (plain, guarded):
        assert one_update(trainer).broken is None
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


def test_truncated_answers_can_be_left_out(make_trainer: MakeTrainer) -> None:
    """No answer of the tiny model ends within ten tokens, so nothing is left to learn from."""
    trainer = make_trainer(mask_truncated_completions=True)
    before = weights(trainer)
    metrics, _ = trainer.step(1)
    assert metrics["truncated"] == 1
    assert metrics["passes"] == 0
    torch.testing.assert_close(weights(trainer), before, rtol=0, atol=0)


def test_a_run_whose_updates_keep_breaking_stops_and_keeps_its_checkpoint(make_trainer: MakeTrainer) -> None:
    seen = Seen()
    trainer = make_trainer(max_steps=9, max_kl=1e-9, callbacks=[seen])
    before = weights(trainer)
    with pytest.raises(UserError, match="in 3 steps in a row; the last good checkpoint is kept"):
        trainer.train()
    assert [len(metrics["warnings"]) for metrics in seen.steps] == [1, 1, 1]
    assert trainer.progress.skipped_updates == 3
    torch.testing.assert_close(weights(trainer), before, rtol=0, atol=0)
    resumed = make_trainer(max_steps=9, max_kl=1e-9)
    resumed.start(resume=True)
    assert resumed.progress.step == 0


def test_stop_on_hacking_ends_the_run_and_a_resumed_one_remembers(make_trainer: MakeTrainer) -> None:
    class Gamed(Callback):
        def on_step(self, metrics: Metrics) -> None:
            if metrics["step"] == 2:
                trainer.monitor.seen.add("length")

    trainer = make_trainer(max_steps=4, stop_on_hacking=True, callbacks=[Gamed()])
    trainer.train()
    assert trainer.progress.step == 2
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
    batch = trainer.advantages(rollout, rewards, torch.tensor([True] * 4), scores, scores)
    assert batch.advantages[0, :3].tolist() == pytest.approx([1.5, -1.5, 1 / math.sqrt(2)])


def test_a_loss_that_is_not_finite_says_so(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer()
    rollout = trainer.rollout(1)
    scores = trainer.score(rollout)
    batch = trainer.advantages(rollout, rollout.mask, torch.tensor([True] * 4), scores, scores)
    batch.advantages[0, 0] = math.nan
    outcome = update(Learner(trainer.policy, trainer.optimizer, trainer.accelerator), rollout, batch, trainer.args)
    assert outcome.broken == "the update's policy_loss is nan"
    assert outcome.stats["skipped"] == 1
