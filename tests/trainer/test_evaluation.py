"""Evaluation on held-out prompts during training: its metrics, and that it does not affect training."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import pytest
import torch
from support import PROMPTS, MakeTrainer, Seen, VowelCritic, weights

from text2grad import Text2GradTrainer
from text2grad.errors import UserError
from text2grad.schema import Example, Feedback
from text2grad.trainer.callbacks import Callback, Metrics
from text2grad.trainer.config import PolicySettings
from text2grad.trainer.evaluation import eval_metrics, fixed_subset, should_evaluate
from text2grad.trainer.monitor import EVAL_SCORE

HELD_OUT = [Example(id=f"h{i}", prompt=f"Say {i}.", reference="fox") for i in range(5)]


def completed(completion: str, score: float | None, reference: str | None = None) -> Example:
    said = Feedback.failure("c", "planted") if score is None else Feedback(critic="c", score=score)
    return Example(id="x", prompt="p", completion=completion, reference=reference, feedback=said)


def recorded(trainer: Text2GradTrainer) -> list[Metrics]:
    return [json.loads(line) for line in trainer.run.metrics.read_text().splitlines()]


def training_only(metrics: Metrics) -> Metrics:
    return {k: v for k, v in metrics.items() if not k.startswith(("eval/", "time/", "tokens_per_second"))}


def test_metrics_by_hand() -> None:
    examples = [
        completed("a fox", 1.0, "a fox"),
        completed("no", 4.0),
        completed("one two three", None, "one two three"),
    ]
    assert eval_metrics(examples) == {
        "eval/score": 2.5,  # the failed one is counted, not averaged in
        "eval/rouge_l": 1.0,  # of the one that has a reference and did not fail
        "eval/words": 1.5,
        "eval/samples": 3,
        "eval/failed": 1,
    }


def test_without_a_reference_there_is_no_rouge_and_without_a_critique_no_score() -> None:
    assert "eval/rouge_l" not in eval_metrics([completed("a", 1.0)])
    metrics = eval_metrics([completed("a", None, "a")])
    assert math.isnan(metrics["eval/score"])
    assert math.isnan(metrics["eval/words"])
    assert metrics["eval/failed"] == 1


def test_when_it_is_due() -> None:
    settings = PolicySettings(max_steps=7, eval_steps=3)
    assert [step for step in range(1, 8) if should_evaluate(step, settings)] == [3, 6, 7]
    assert not should_evaluate(7, PolicySettings(max_steps=7))


def test_the_subset_is_spread_over_the_data() -> None:
    assert [e.id for e in fixed_subset(PROMPTS, 3)] == ["0", "2", "4"]
    assert fixed_subset(PROMPTS, None) == fixed_subset(PROMPTS, 99) == PROMPTS
    assert fixed_subset([], None) == []


@pytest.mark.parametrize("lora", [True, False])
def test_evaluation_does_not_change_training(make_trainer: MakeTrainer, lora: bool) -> None:
    settings = {"max_steps": 4, "num_iterations": 2, "kl_controller": "adaptive", "lora": lora}
    alone = make_trainer("alone", **settings)
    watched = make_trainer("watched", eval_steps=1, eval_dataset=HELD_OUT, eval_temperature=0.7, **settings)
    for trainer in (alone, watched):
        trainer.train()
    assert [training_only(m) for m in recorded(alone)] == [training_only(m) for m in recorded(watched)]
    assert alone.run.samples.read_text() == watched.run.samples.read_text()
    torch.testing.assert_close(weights(alone), weights(watched), rtol=0, atol=0)
    assert all(m["eval/samples"] == 5 and m["time/evaluation"] > 0 for m in recorded(watched))


def test_the_same_weights_get_the_same_metrics_each_time(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(eval_steps=1, eval_dataset=HELD_OUT)
    first, second = trainer.evaluate(), trainer.evaluate()
    assert training_only(first) == training_only(second)
    assert first[EVAL_SCORE] == second[EVAL_SCORE]


def test_completions_are_sampled_at_the_evaluation_temperature(make_trainer: MakeTrainer) -> None:
    greedy = make_trainer("greedy", eval_steps=1, eval_dataset=HELD_OUT, eval_temperature=0.0)
    drawn = make_trainer("drawn", eval_steps=1, eval_dataset=HELD_OUT)
    assert greedy.args.generation_temperature == 0.0
    assert drawn.args.generation_temperature == drawn.args.temperature == 1.0
    assert greedy.evaluate()[EVAL_SCORE] != drawn.evaluate()[EVAL_SCORE]


def test_a_subset_is_evaluated_and_failures_are_counted(make_trainer: MakeTrainer) -> None:
    asked: list[str] = []

    class Fails(VowelCritic):
        def critique(self, examples: Sequence[Example]) -> list[Feedback]:
            heldout = [e.id for e in examples if e.id.startswith("h")]
            asked.extend(heldout)
            self.failing = {1} if heldout else set()
            return super().critique(examples)

    seen = Seen()
    trainer = make_trainer(
        critic=Fails(), max_steps=2, eval_steps=2, max_eval_samples=3, eval_dataset=HELD_OUT, callbacks=[seen]
    )
    trainer.train()
    assert asked == ["h0", "h1", "h3"]
    assert EVAL_SCORE not in seen.steps[0]
    assert (seen.steps[1]["eval/failed"], seen.steps[1]["eval/samples"]) == (1, 3)
    assert seen.steps[1]["critic/failed"] == 0


def test_evaluations_in_which_every_critique_fails_are_no_reason_to_stop(make_trainer: MakeTrainer) -> None:
    class Mute(VowelCritic):
        def critique(self, examples: Sequence[Example]) -> list[Feedback]:
            self.failing = set(range(9)) if examples[0].id.startswith("h") else set()
            return super().critique(examples)

    trainer = make_trainer(critic=Mute(), eval_steps=1, early_stopping_patience=1, eval_dataset=HELD_OUT)
    trainer.train()
    assert [m[EVAL_SCORE] for m in recorded(trainer)] == [None, None, None]
    assert not trainer.run.best.exists()


def test_a_skipped_step_is_not_evaluated(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(max_steps=2, rollback_kl=1e-9, eval_steps=1, eval_dataset=HELD_OUT)
    trainer.train()
    assert all(EVAL_SCORE not in metrics for metrics in recorded(trainer))


def test_evaluation_without_held_out_prompts_is_rejected_before_the_model_is_loaded(make_trainer: MakeTrainer) -> None:
    with pytest.raises(UserError, match="no held-out prompts: set data"):
        make_trainer(eval_steps=1)


def test_a_held_out_prompt_that_does_not_fit_is_known_at_once(make_trainer: MakeTrainer) -> None:
    with pytest.raises(UserError, match='"long" has'):
        make_trainer(eval_steps=1, eval_dataset=[Example(id="long", prompt="far too long " * 500)])


@pytest.mark.parametrize("name", ["load_best_model_at_end", "early_stopping_patience"])
def test_settings_that_need_evaluations_are_rejected_without(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} needs the held-out score, but eval_steps is null"):
        PolicySettings.model_validate({name: 1})


class Scripted(VowelCritic):
    """Gives held-out completions the next score of a list; `asked` counts the evaluations."""

    def __init__(self, scores: Sequence[float], asked: int = 0) -> None:
        super().__init__()
        self.scores, self.asked = scores, asked

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        if not examples[0].id.startswith("h"):
            return super().critique(examples)
        self.asked += 1
        return [Feedback(critic="script", score=self.scores[self.asked - 1]) for _ in examples]


@pytest.mark.parametrize("lora", [True, False])
def test_the_best_weights_are_kept_and_become_the_final_ones(make_trainer: MakeTrainer, lora: bool) -> None:
    class Keep(Callback):
        def on_step(self, metrics: Metrics) -> None:
            after.append({k: v.detach().clone() for k, v in trainer.policy.model.state_dict().items()})

    after: list[dict[str, torch.Tensor]] = []
    critic = Scripted([0.1, 0.5, 0.4, 0.5])
    settings = {"max_steps": 4, "eval_steps": 1, "load_best_model_at_end": True, "eval_dataset": HELD_OUT, "lora": lora}
    trainer = make_trainer(critic=critic, callbacks=[Keep()], **settings)
    trainer.train()
    torch.testing.assert_close(dict(trainer.policy.model.state_dict()), after[1], rtol=0, atol=0)
    assert any(not torch.equal(after[1][k], after[3][k]) for k in after[1])
    assert trainer.trained_steps == 2
    final = trainer.save_model()
    name = "adapter_model.safetensors" if lora else "model.safetensors"
    assert (final / name).read_bytes() == (trainer.run.best / name).read_bytes()
    assert "| steps | `2` |" in (final / "README.md").read_text()
    with pytest.raises(UserError, match="already holds a run"):
        trainer.train()  # the weights are no longer those of the last step
    trainer.train(resume=True)
    assert trainer.state.step == 4


def test_early_stopping_ends_the_run_and_a_resumed_one_at_once(
    make_trainer: MakeTrainer, caplog: pytest.LogCaptureFixture
) -> None:
    settings = {"max_steps": 20, "save_steps": 7, "eval_steps": 2, "eval_dataset": HELD_OUT}
    critic = Scripted([0.3, 0.2, 0.3, 9.0])
    trainer = make_trainer(critic=critic, early_stopping_patience=2, **settings)
    trainer.train()
    assert (trainer.state.step, critic.asked) == (6, 3)
    said = "the run ends after step 6: early stopping: the held-out score has not risen above 0.3, that of step 2"
    assert said in caplog.text

    caplog.clear()
    seen = Seen()
    resumed = make_trainer(critic=critic, early_stopping_patience=2, callbacks=[seen], **settings)
    resumed.train(resume=True)
    assert not seen.steps
    assert said in caplog.text
    patient = make_trainer(critic=critic, early_stopping_patience=3, **(settings | {"max_steps": 8}))
    patient.train(resume=True)
    assert patient.best_checkpoint.best is not None
    assert patient.best_checkpoint.best.step == 8


def test_a_resumed_run_keeps_the_same_best_checkpoint_as_an_uninterrupted_one(make_trainer: MakeTrainer) -> None:
    scores = [0.1, 0.5, 0.4, 0.6, 0.2]
    settings = {"max_steps": 5, "eval_steps": 1, "save_steps": 3, "eval_dataset": HELD_OUT}
    through = make_trainer("through", critic=Scripted(scores), **settings)
    through.train()

    class KilledError(Exception):
        pass

    class KillBefore(Callback):
        """Dies with the checkpoint of the fourth step written, and the best weights not yet."""

        def on_save(self, folder: object) -> None:
            if trainer.state.step == 4:
                raise KilledError

    trainer = make_trainer("killed", critic=Scripted(scores), callbacks=[KillBefore()], **settings)
    with pytest.raises(KilledError):
        trainer.train()
    resumed = make_trainer("killed", critic=Scripted(scores, asked=4), **settings)
    resumed.train(resume=True)
    assert resumed.best_checkpoint == through.best_checkpoint
    one, other = (t.run.best / "adapter_model.safetensors" for t in (through, resumed))
    assert one.read_bytes() == other.read_bytes()
    assert [training_only(m) for m in recorded(through)] == [training_only(m) for m in recorded(resumed)]
