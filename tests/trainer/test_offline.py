"""Logged feedback is learned, within bounds, and nothing is sampled."""

from __future__ import annotations

import json

import pytest
from peft import LoraConfig

from text2grad.errors import UserError
from text2grad.models.loading import load_tokenizer
from text2grad.schema import Example, Feedback, Omission, Span
from text2grad.trainer import offline as logged
from text2grad.trainer.batch import make_batch, rollout_rewards
from text2grad.trainer.config import CorrectionSettings, Text2GradConfig
from text2grad.trainer.offline import DEFAULTS, OfflineTrainer, completion_ids, steps_for, usable_feedback
from text2grad.trainer.scoring import score_with_branches

ANSWER = "We meet on Friday at noon."
BLAMED, PRAISED = (11, 17), (21, 25)


def commented(number: int = 0, **feedback) -> Example:
    spans = [
        Span(start=BLAMED[0], end=BLAMED[1], label="poor"),
        Span(start=PRAISED[0], end=PRAISED[1], label="good"),
    ]
    said = Feedback(critic="human", critique="Not on Friday.", **({"spans": spans} | feedback))
    return Example(id=str(number), prompt=f"When do we meet? {number}", completion=ANSWER, feedback=said)


@pytest.fixture
def learn(tiny_model, tmp_path):
    """Train on examples; returns the trainer and the completion's log-probabilities before and after."""

    def run(examples, steps=10, **settings):
        args = Text2GradConfig(
            output_dir=tmp_path / f"run{len(list(tmp_path.iterdir()))}",
            max_steps=steps,
            per_device_train_batch_size=len(examples),
            **({"learning_rate": 0.002, "bf16": False} | DEFAULTS | settings),
        )
        trainer = OfflineTrainer(
            tiny_model, args, examples, peft_config=LoraConfig(r=4, lora_alpha=8, target_modules="all-linear")
        )
        rollout = trainer.rollout(1)
        before = trainer.score(rollout).logprobs
        trainer.train()
        return trainer, rollout, before, trainer.score(rollout).logprobs

    return run


def moved(rollout, before, after, span):
    (places,) = rollout.offsets[:1]
    inside = [i for i, (a, b) in enumerate(places) if a < span[1] and b > span[0]]
    return (after - before)[0, inside]


def test_the_correction_of_a_logged_answer_is_learned(learn):
    spans = [Span(start=BLAMED[0], end=BLAMED[1], label="poor", replacement="Monday")]
    probabilities = {}
    for weight in (0.0, 1.0):
        trainer, rollout, _, _ = learn(
            [commented(spans=spans)], corrections=DEFAULTS["corrections"] | {"weight": weight}
        )
        branches = _with_weight(trainer).find_corrections(rollout, [rollout.examples[0].feedback]).branches
        _, logprobs = score_with_branches(trainer.learner, rollout, [0], trainer.args, False, branches)
        probabilities[weight] = logprobs[0].sum()
    assert probabilities[1.0] > probabilities[0.0] + 0.5


def _with_weight(trainer):
    trainer.args = trainer.args.model_copy(update={"corrections": CorrectionSettings()})
    return trainer


def test_blame_goes_down_and_praise_goes_up(learn):
    _, rollout, before, after = learn([commented()])
    assert moved(rollout, before, after, BLAMED).mean() < -0.02
    assert moved(rollout, before, after, PRAISED).mean() > 0.02


def test_however_long_it_trains_the_change_is_bounded(learn):
    _, rollout, before, after = learn([commented()], steps=60, epsilon=0.3, beta=0.0, learning_rate=0.005)
    ratio = moved(rollout, before, after, BLAMED).exp()
    assert ratio.mean() < 0.95
    assert (ratio > 0.5).all()  # 0.7 is where the push ends; momentum carries a little further


def test_a_large_beta_keeps_the_model_near_the_reference(learn):
    *_, before, after = learn([commented()], steps=20)
    *_, held_before, held_after = learn([commented()], steps=20, beta=50.0)
    assert (held_after - held_before).abs().mean() < 0.3 * (after - before).abs().mean()


def test_the_run_shows_how_far_it_has_gone(learn):
    trainer, *_ = learn([commented()], steps=4)
    metrics = [json.loads(line) for line in trainer.run.metrics.read_text(encoding="utf-8").splitlines()]
    assert metrics[0]["kl"] == 0
    assert all(step["kl"] >= 0 for step in metrics)  # blamed words become less probable: no negative KL
    assert metrics[-1]["kl"] > 0
    assert metrics[-1]["tokens_per_second"] < 1e5


def test_nothing_is_sampled(learn, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("sampled")

    monkeypatch.setattr("text2grad.rollout.samplers.sample", refuse)
    trainer, *_ = learn([commented()], steps=2)
    assert trainer.state.step == 2


def test_examples_without_valid_feedback_are_skipped(learn, tiny_model, tmp_path):
    failed = Example(id="f", prompt="p", completion="x", feedback=Feedback.failure("human", "gone"))
    trainer, *_ = learn([commented(), commented(1)], steps=1)
    assert len(trainer.examples) == 2
    with pytest.raises(UserError, match="no training data: none of 2 examples"):
        OfflineTrainer(tiny_model, Text2GradConfig(output_dir=tmp_path / "none"), [failed, Example(id="s", prompt="p")])


def test_comments_that_are_too_uncertain_to_count_are_neutral():
    span = commented().feedback.spans[0]
    unsure = commented(spans=[span.model_copy(update={"confidence": 0.1})])
    assert usable_feedback([commented(), unsure]).neutral == 1


def test_feedback_that_only_says_something_is_refused_with_the_remedy():
    critique = Feedback(critic="human", critique="It is not on Friday.")
    unread = [commented(i, spans=[]).model_copy(update={"feedback": critique}) for i in range(2)]
    with pytest.raises(UserError, match=r"^c\.jsonl: .*none of 2 critiques .*`text2grad align c\.jsonl -o"):
        usable_feedback(unread).check("c.jsonl")
    usable_feedback([*unread, commented()]).check()


def test_only_uncertain_feedback_is_refused_unless_little_confidence_is_asked_for():
    span = commented().feedback.spans[0]
    unsure = commented(spans=[span.model_copy(update={"confidence": 0.1})])
    with pytest.raises(UserError, match=r"with a confidence of at least 0\.25; .* or lower credit\.min_confidence"):
        usable_feedback([unsure]).check()
    usable_feedback([unsure], min_confidence=0.05).check()


def test_an_empty_file_is_named():
    with pytest.raises(UserError, match=r"^e\.jsonl: no training data: there are no examples"):
        usable_feedback([]).check("e.jsonl")


def test_rows_that_cannot_be_used_are_counted_with_the_reason():
    neutral = commented(1, spans=[])
    failed = [
        Example(id=f"f{i}", prompt="p", completion="x", feedback=Feedback.failure("human", f"lost: at {i}"))
        for i in range(2)
    ]
    rows = [
        commented(),
        neutral,
        *failed,
        Example(id="n", prompt="p", completion="x"),
        commented(2).model_copy(update={"prompt": " "}),
        commented(3).model_copy(update={"completion": ""}),
    ]
    usable = usable_feedback(rows)
    assert [example.id for example in usable.examples] == ["0", "1"]
    assert (usable.total, usable.neutral) == (7, 1)
    assert usable.unusable == {"failed: lost": 2, "no feedback": 1, "no prompt": 1, "no completion": 1}


def test_completions_that_do_not_fit_are_left_out(learn, tiny_model, tmp_path):
    context = OfflineTrainer(
        tiny_model, Text2GradConfig(output_dir=tmp_path / "a", bf16=False, **DEFAULTS), [commented()]
    ).context
    long_answer = commented(1).model_copy(update={"completion": ANSWER + " x" * context})
    long_prompt = commented(2).model_copy(update={"prompt": "p " * context})
    other_ids = commented(3).model_copy(update={"meta": {logged.IDS: [5, 6]}})
    trainer, *_ = learn([commented(), long_answer, long_prompt, other_ids], steps=1)
    assert [example.id for example in trainer.examples] == ["0"]
    assert len(trainer.prompts) == len(trainer.completions) == len(trainer.offsets) == 1
    assert trainer.usable.total == 4
    assert trainer.usable.unusable == {
        f"longer than the model's context of {context} tokens": 2,
        f"the tokenizer cannot write the completion, and meta.{logged.IDS} does not": 1,
    }
    with pytest.raises(UserError, match=r"none of 1 examples .*longer than the model's context"):
        learn([long_answer])


def test_held_out_prompts_are_judged_by_the_critic_and_training_is_not(learn, tiny_model, tmp_path):
    asked = []

    class Critic:
        def critique(self, examples):
            asked.extend(example.id for example in examples)
            return [Feedback(critic="c", score=1.0) for _ in examples]

    args = Text2GradConfig(
        output_dir=tmp_path / "r", max_steps=1, per_device_train_batch_size=1, bf16=False, **DEFAULTS
    )
    heldout = [Example(id="held out", prompt="p")]
    with pytest.raises(UserError, match="need a critic, and logged feedback has none"):
        OfflineTrainer(tiny_model, args, [commented()], eval_dataset=heldout)
    trainer = OfflineTrainer(tiny_model, args, [commented()], critic=Critic(), eval_dataset=heldout)
    trainer.train()
    assert asked == []
    assert trainer.evaluate()["eval/score"] == 1.0
    assert asked == ["held out"]


def test_omissions_are_charged_to_the_end(learn):
    lacking, complete = commented(0, spans=[], omissions=[Omission(text="the place")]), commented(1, spans=[])
    trainer, rollout, *_ = learn([lacking, complete], steps=1)
    feedback = trainer.critic.critique(rollout.examples)
    rewards = rollout_rewards(rollout, feedback, trainer.args.credit, seed=0, step=1)
    scores = trainer.score(rollout)
    ends = make_batch(rollout, rewards, scores, scores, trainer.args, trainer.state).advantages[:, -1]
    rows = {example.id: row for row, example in enumerate(rollout.examples)}
    assert ends[rows["0"]] < 0 < ends[rows["1"]]  # against each other: one lacks more than the other


def test_no_engine_is_started_for_completions_that_are_given(tiny_model, tmp_path):
    args = Text2GradConfig(output_dir=tmp_path, rollouts="vllm_server", bf16=False, **DEFAULTS)
    trainer = OfflineTrainer(tiny_model, args, [commented()])
    assert trainer.sampler is trainer.hf_sampler


def test_logged_ids_are_kept_and_must_decode_to_the_completion(tiny_model):
    tokenizer = load_tokenizer(tiny_model)
    usual = completion_ids(commented(), tokenizer)
    assert usual[-1] == tokenizer.eos_token_id
    letters = [tokenizer.convert_tokens_to_ids(letter) for letter in "noon"]
    cut = Example(id="c", prompt="p", completion="noon", meta={logged.IDS: letters})
    assert completion_ids(cut, tokenizer) == letters
    assert completion_ids(cut.model_copy(update={"completion": "moon"}), tokenizer) is None


@pytest.mark.parametrize("logged_ids", ["noon", 7, [None], [[1]], [-1], [10**9]])
def test_logged_ids_that_are_none_are_not_taken(tiny_model, logged_ids):
    tokenizer = load_tokenizer(tiny_model)
    letters = [tokenizer.convert_tokens_to_ids(letter) for letter in "noon"]
    ids = [*letters, *logged_ids] if isinstance(logged_ids, list) else logged_ids
    damaged = Example(id="d", prompt="p", completion="noon", meta={logged.IDS: ids})
    assert completion_ids(damaged, tokenizer) is None


def test_the_name_of_the_end_token_does_not_end_a_completion(tiny_model):
    tokenizer = load_tokenizer(tiny_model)
    sly = Example(id="s", prompt="p", completion="so <|im_end|> it goes")
    assert completion_ids(sly, tokenizer).count(tokenizer.eos_token_id) == 1


@pytest.mark.parametrize(("examples", "batch", "epochs", "steps"), [(10, 4, 2, 5), (3, 8, 1, 1), (9, 4, 1, 3)])
def test_steps_for_some_epochs(examples, batch, epochs, steps):
    assert steps_for(examples, batch, epochs) == steps


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"num_generations": 2}, "num_generations must be 1"),
        ({"kl_placement": "reward"}, "kl_placement must be loss"),
        ({"kl_controller": "adaptive"}, "kl_controller must be fixed"),
    ],
)
def test_settings_that_would_do_nothing_or_harm_are_refused(learn, settings, says):
    with pytest.raises(UserError, match=says):
        learn([commented(), commented()], **settings)
