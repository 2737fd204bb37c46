import json
import math
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate.state import GradientState
from accelerate.utils import GradientAccumulationPlugin
from support import MakeTrainer, Seen, VowelCritic, weights

from text2grad import Text2GradConfig, Text2GradTrainer
from text2grad.align.tokens import decode
from text2grad.errors import UserError
from text2grad.models.loading import load_model, load_tokenizer
from text2grad.schema import Example, Feedback, Span
from text2grad.trainer.callbacks import Callback, Metrics
from text2grad.trainer.policy_setup import load_initial
from text2grad.trainer.trainer import NO_GRADIENT


def optimizer_state(trainer: Text2GradTrainer) -> dict[str, torch.Tensor]:
    state = trainer.optimizer.state_dict()["state"]
    assert {"step", "exp_avg", "exp_avg_sq"} <= state[0].keys()
    return {f"{index}.{name}": tensor for index, entry in state.items() for name, tensor in entry.items()}


def test_blame_makes_vowels_rarer_and_praise_makes_z_more_common(make_trainer: MakeTrainer) -> None:
    # All weights: the output layer of so small a random model gives an adapter nothing to choose from.
    seen = Seen()
    make_trainer(
        lora=False, max_steps=20, per_device_train_batch_size=16, beta=0.0, num_logged_completions=0, callbacks=[seen]
    ).train()
    rewards = [metrics["reward"] for metrics in seen.steps]
    assert sum(rewards[-3:]) / 3 > sum(rewards[:3]) / 3 + 1.0


def test_other_accelerators_of_the_process_change_nothing(
    make_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They share what they know of gradient accumulation."""
    alone, _ = make_trainer("alone", max_grad_norm=1e9).step(1)
    trainer = make_trainer("beside", max_grad_norm=1e9)
    monkeypatch.setitem(GradientState._shared_state, "sync_gradients", False)
    monkeypatch.setitem(
        GradientState._shared_state, "plugin_kwargs", GradientAccumulationPlugin(num_steps=8).to_kwargs()
    )
    before = {name: weight.clone() for name, weight in weights(trainer).items()}
    beside, _ = trainer.step(1)
    assert beside["grad_norm"] == pytest.approx(alone["grad_norm"])
    assert any(not torch.equal(weight, before[name]) for name, weight in weights(trainer).items())


def test_a_tokenizer_without_a_pad_token_pads_with_its_end_token(tiny_model: Path) -> None:
    tokenizer = load_tokenizer(tiny_model)
    tokenizer.pad_token = None
    initial = load_initial(load_model(tiny_model), tokenizer, peft_config=None, bf16=False)
    assert initial.tokenizer.pad_token_id == tokenizer.eos_token_id


def test_what_is_trained_on_is_what_was_sampled(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer()
    rollout = trainer.rollout(1)
    for ids, example in zip(rollout.completions, rollout.examples, strict=True):
        assert example.completion == decode(ids, trainer.tokenizer)
    scores = trainer.score(rollout)
    assert scores.logprobs.shape == rollout.mask.shape
    assert torch.equal(scores.logprobs != 0, rollout.mask.bool())


def test_a_failed_critique_is_masked_and_does_not_touch_its_neighbours(make_trainer: MakeTrainer) -> None:
    """Two steps on the same samples: failing the last critique = not having that sample."""
    whole = make_trainer("whole", critic=VowelCritic(failing=[3]))
    rollout = whole.rollout(1)
    metrics, samples = whole.step(1)
    assert (metrics["critic/failed"], metrics["samples"], metrics["critic/error"]) == (1, 4, "planted")
    assert samples[3]["total"] is None
    assert all(token["advantage"] is None for token in samples[3]["tokens"])

    class OnlyThree:
        def critique(self, examples: Sequence[Example]) -> list[Feedback]:
            said = VowelCritic().critique(examples)
            return [*said[:3], Feedback.failure("vowels", "another error")]

    other = make_trainer("other", critic=OnlyThree())
    other.step(1)
    torch.testing.assert_close(weights(whole), weights(other), rtol=0, atol=0)
    totals = [sum(t["reward"] for t in s["tokens"]) for s in samples[:3]]
    assert metrics["reward"] == pytest.approx(sum(totals) / 3)
    assert len(rollout.examples) == 4


def test_without_any_valid_critique_nothing_moves_and_the_run_stops_with_the_cause(make_trainer: MakeTrainer) -> None:
    seen = Seen()
    trainer = make_trainer(critic=VowelCritic(failing=range(4)), max_steps=9, callbacks=[seen])
    before = weights(trainer)
    with pytest.raises(UserError, match="every critique failed in 3 consecutive steps, last: planted"):
        trainer.train()
    torch.testing.assert_close(weights(trainer), before, rtol=0, atol=0)
    assert len(seen.steps) == 3
    recorded = [json.loads(line) for line in trainer.run.metrics.read_text().splitlines()]
    assert recorded[0]["reward"] is None
    assert recorded[0]["critic/failed"] == 4


def test_a_critic_without_comments_is_warned_of(make_trainer: MakeTrainer) -> None:
    class Silent:
        def critique(self, examples: Sequence[Example]) -> list[Feedback]:
            return [Feedback(critic="silent") for _ in examples]

    seen, heard = Seen(), Seen()
    make_trainer("silent", critic=Silent(), max_steps=1, beta=0.0, callbacks=[seen]).train()
    make_trainer("heard", max_steps=1, beta=0.0, callbacks=[heard]).train()
    assert ([m["warnings"] for m in seen.steps], heard.steps[0]["warnings"]) == ([[NO_GRADIENT]], [])


def test_feedback_outside_the_completion_is_a_failure(make_trainer: MakeTrainer) -> None:
    class Outside:
        def critique(self, examples: Sequence[Example]) -> list[Feedback]:
            said = VowelCritic().critique(examples)
            said[0] = Feedback(critic="outside", spans=[Span(start=0, end=10_000, label="good")])
            return said

    metrics, _ = make_trainer(critic=Outside()).step(1)
    assert metrics["critic/failed"] == 1
    assert "10000" in metrics["critic/error"]


def test_a_critic_that_returns_too_few_feedbacks_is_named(make_trainer: MakeTrainer) -> None:
    class Lazy:
        def critique(self, examples: Sequence[Example]) -> list[Feedback]:
            return []

    metrics, _ = make_trainer(critic=Lazy()).step(1)
    assert metrics["critic/failed"] == 4
    assert metrics["critic/error"].startswith("the critic Lazy returned 0 feedbacks for 4 examples")


@pytest.mark.parametrize("settings", [{"max_tokens_per_batch": 60}, {"gradient_checkpointing": True}])
def test_how_a_step_is_cut_up_does_not_change_it(make_trainer: MakeTrainer, settings: dict[str, object]) -> None:
    plain, other = make_trainer("plain"), make_trainer("other", **settings)
    for trainer in (plain, other):
        trainer.step(1)
    torch.testing.assert_close(weights(plain), weights(other), atol=2e-5, rtol=0)


def test_a_gradient_that_is_not_finite_skips_the_step_and_is_counted(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer()
    before = weights(trainer)
    parameter = trainer.policy.trainable()["value_head.bias"]
    parameter.register_hook(lambda gradient: gradient * float("nan"))
    metrics, _ = trainer.step(1)
    assert metrics["skipped"] == 1
    assert math.isnan(metrics["grad_norm"])
    torch.testing.assert_close(weights(trainer), before, rtol=0, atol=0)


@pytest.mark.parametrize("lora", [True, False])
@pytest.mark.parametrize("siblings", [1, 4])
def test_resuming_gives_the_same_run_bit_for_bit(make_trainer: MakeTrainer, siblings: int, lora: bool) -> None:
    settings: dict[str, Any] = {
        "max_steps": 4,
        "per_device_train_batch_size": 8,
        "num_generations": siblings,
        "num_iterations": 2,
        "max_tokens_per_batch": 150,
        "learning_rate": 1e-3,
        "kl_controller": "adaptive",
        "lr_scheduler_type": "cosine",
        "lora": lora,
    }
    through = make_trainer("through", **settings)
    through.train()

    class StoppedError(Exception):
        pass

    class KilledInStepThree(Callback):
        def on_step(self, metrics: Metrics) -> None:
            if metrics["step"] == 3:
                raise StoppedError

    interrupted = make_trainer("resumed", callbacks=[KilledInStepThree()], **settings)
    with pytest.raises(StoppedError):
        interrupted.train()
    resumed = make_trainer("resumed", **settings)
    resumed.train(resume=True)
    for state in (weights, optimizer_state):
        torch.testing.assert_close(state(resumed), state(through), rtol=0, atol=0)
    assert resumed.state == through.state
    curves = [
        [
            {k: v for k, v in json.loads(line).items() if not k.startswith(("time/", "tokens_per_second"))}
            for line in t.run.metrics.read_text().splitlines()
        ]
        for t in (through, resumed)
    ]
    assert curves[0] == curves[1]
    assert [m["step"] for m in curves[1]] == [1, 2, 3, 4]
    assert through.run.samples.read_text() == resumed.run.samples.read_text()


def test_a_new_run_does_not_overwrite_an_old_one(make_trainer: MakeTrainer) -> None:
    make_trainer(max_steps=1).train()
    with pytest.raises(UserError, match="already holds a run"):
        make_trainer(max_steps=1).train()


def test_the_same_trainer_resumes_from_its_checkpoint_too(make_trainer: MakeTrainer) -> None:
    class Interrupt(Callback):
        done = False

        def on_step(self, metrics: Metrics) -> str | None:
            if metrics["step"] == 2 and not self.done:
                self.done = True
                raise KeyboardInterrupt
            return None

    through = make_trainer("through", max_steps=3)
    through.train()
    trainer = make_trainer("interrupted", max_steps=3, callbacks=[Interrupt()])
    with pytest.raises(KeyboardInterrupt):
        trainer.train()
    trainer.train(resume=True)
    torch.testing.assert_close(weights(trainer), weights(through), rtol=0, atol=0)
    assert len(trainer.run.metrics.read_text().splitlines()) == 3


def test_a_run_that_was_killed_before_its_first_record_resumes(make_trainer: MakeTrainer) -> None:
    make_trainer("killed").start()
    resumed, through = make_trainer("killed"), make_trainer("through")
    resumed.train(resume=True)
    through.train()
    assert resumed.state == through.state
    torch.testing.assert_close(weights(resumed), weights(through), rtol=0, atol=0)


def test_resume_needs_a_checkpoint_of_the_same_adapter(make_trainer: MakeTrainer) -> None:
    with pytest.raises(UserError, match="no checkpoint to resume from"):
        make_trainer().train(resume=True)
    make_trainer(max_steps=1).train()
    with pytest.raises(UserError, match="another model or adapter"):
        make_trainer(lora=False).train(resume=True)


def test_every_epoch_asks_every_prompt_once(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(per_device_train_batch_size=4, num_generations=2)
    asked = [i for step in range(1, 7) for i in trainer._prompt_indices(step)]
    assert sorted(asked[:6]) == sorted(asked[6:]) == list(range(6))
    assert asked[:6] != asked[6:]


def test_full_weights_and_bf16_compute(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(lora=False, bf16=True, max_steps=2, learning_rate=1e-3)
    trainer.train()
    assert {p.dtype for p in trainer.policy.trainable().values()} == {torch.float32}
    saved = trainer.save_model()
    assert (saved / "model.safetensors").is_file()


def test_the_adapter_is_saved_where_peft_reads_it(make_trainer: MakeTrainer, tiny_model: object) -> None:
    from peft import PeftModel

    from text2grad.models.loading import load_model

    trainer = make_trainer(max_steps=1)
    trainer.train()
    loaded = PeftModel.from_pretrained(load_model(str(tiny_model)), trainer.save_model())
    trained = {k: v for k, v in trainer.policy.model.state_dict().items() if "lora_" in k}
    assert trained
    for name, tensor in loaded.state_dict().items():
        if "lora_" in name:
            torch.testing.assert_close(tensor, trained[name].cpu())


def test_scoring_runs_concurrently_with_a_critic_that_waits_and_changes_nothing(make_trainer: MakeTrainer) -> None:
    class Waiting(VowelCritic):
        thread = ""

        async def acritique(self, examples: Sequence[Example]) -> list[Feedback]:
            return self.critique(examples)

        def critique(self, examples: Sequence[Example]) -> list[Feedback]:
            self.thread = threading.current_thread().name
            return super().critique(examples)

    critic = Waiting()
    beside, alone = make_trainer("beside", critic=critic), make_trainer("alone", critic=VowelCritic())
    for trainer in (beside, alone):
        metrics, _ = trainer.step(1)
        assert {"time/step", "time/rollout", "time/critique_and_score", "time/update"} <= metrics.keys()
    assert critic.thread == "MainThread"  # where Ctrl-C arrives
    torch.testing.assert_close(weights(beside), weights(alone), rtol=0, atol=0)


def test_what_is_no_critic_is_refused_before_anything_is_loaded() -> None:
    class Mute:
        """Cannot comment."""

    args = Text2GradConfig(output_dir=Path("never written"))
    refused: list[tuple[Any, str]] = [
        (len, "the critic len is not a class with a method critique"),
        (Mute(), "Mute is not"),
        (VowelCritic, "pass an instance of it"),
    ]
    for critic, says in refused:
        with pytest.raises(UserError, match=says):
            Text2GradTrainer("no such model", critic, args, [])


def test_prompts_may_be_plain_rows(make_trainer: MakeTrainer) -> None:
    rows: Any = [{"prompt": "Say A.", "id": "a"}, {"prompt": "Say B."}]
    examples = make_trainer(eval_dataset=rows).eval_examples
    assert [(example.id, example.prompt) for example in examples] == [("a", "Say A."), ("1", "Say B.")]
