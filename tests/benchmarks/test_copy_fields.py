"""The synthetic task, and a fast version of its result: span credit learns faster than one reward per sequence."""

from statistics import fmean

import pytest
from copy_fields import OURS, SILENCE_RATE, compare, make_base_model, make_trainer, median_steps, steps_to, train
from copy_fields_task import CopyCritic, CorrectingCritic, NeverSatisfiedCritic, RandomCritic, make_examples, sentence
from corrections_supervised import correct_text

from text2grad.rewards.corrections import edits
from text2grad.schema import Example, Feedback

FIELDS = {"name": "Ada", "day": "Friday", "colour": "red"}  # meet Ada on Friday wearing red


def comment(answer: str) -> Feedback:
    example = Example(id="0", prompt="", completion=answer, reference=" ".join(sentence(FIELDS)))
    return CopyCritic().critique([example])[0]


@pytest.mark.parametrize(
    ("answer", "blamed", "missing", "score"),
    [
        ("meet Ada on Friday wearing red", [], [], 1.0),
        ("meet Ben on Friday wearing red", ["Ben"], [], 10 / 12),
        ("meet Ada on Friday", [], ["wearing", "red"], 8 / 10),
        ("meet Ada on Friday wearing red at one", ["at", "one"], [], 12 / 14),
        ("meet Ben", ["Ben"], ["on", "Friday", "wearing", "red"], 2 / 8),
        ("", [], ["meet", "Ada", "on", "Friday", "wearing", "red"], 0.0),
    ],
)
def test_the_critic_blames_exactly_the_wrong_words(
    answer: str, blamed: list[str], missing: list[str], score: float
) -> None:
    feedback = comment(answer)
    assert [answer[span.start : span.end] for span in feedback.spans] == blamed
    assert [omission.text for omission in feedback.omissions] == missing
    assert feedback.score == pytest.approx(score)


@pytest.mark.parametrize(
    ("answer", "corrected"),
    [
        ("meet Ada on Friday wearing red", []),
        ("meet Ben on Friday wearing red", [("Ben", "Ada")]),
        ("meet Ada at one on Friday wearing red", [("at one", "")]),
        ("meet Ada on Friday", [(18, " wearing red")]),
        ("on Friday wearing red", [(0, "meet Ada ")]),
        ("meet Ben Friday wearing red at one", [("Ben", "Ada"), ("at one", ""), (8, " on")]),
        ("", [(0, "meet Ada on Friday wearing red")]),
    ],
)
def test_the_correcting_critic_says_what_should_have_been_there(answer: str, corrected: list[tuple[str, str]]) -> None:
    example = Example(id="0", prompt="", completion=answer, reference=" ".join(sentence(FIELDS)))
    (feedback,) = CorrectingCritic().critique([example])
    spans = [(answer[span.start : span.end], span.replacement) for span in feedback.spans]
    omissions = [(omission.insert_at, omission.insertion) for omission in feedback.omissions]
    assert [*spans, *omissions] == corrected
    assert correct_text(answer, list(edits(feedback, answer)))[0] == example.reference
    (one,) = CorrectingCritic(one_fault=True).critique([example])
    assert len(one.spans) + len(one.omissions) == min(len(corrected), 1)


def test_the_never_satisfied_critic_always_finds_an_omission_and_allows_more_words() -> None:
    reference = " ".join(sentence(FIELDS))
    example = Example(id="0", prompt="", completion=f"{reference} at one", reference=reference)
    (feedback,) = NeverSatisfiedCritic().critique([example])
    assert feedback.spans == []
    assert [omission.text for omission in feedback.omissions] == ["more"]


def test_prompts_are_the_same_for_the_same_seed_and_others_for_another() -> None:
    assert make_examples(5, seed=1) == make_examples(5, seed=1)
    assert make_examples(5, seed=1) != make_examples(5, seed=2)
    example = make_examples(1, seed=0)[0]
    words = example.prompt_text.split()
    assert str(example.reference).split()[1::2] == words[1:-1:2]


def test_steps_to_a_share_of_the_best() -> None:
    assert steps_to([0.5, 0.6, 0.8, 0.7], 0.7) == 10
    assert steps_to([0.5, 0.6], 0.7) is None
    compared = compare({"fast": [[0.5, 1.0], [0.5, 0.8]], "slow": [[0.5, 0.9], [0.5, 0.6]]})
    assert compared["slow"] == {"steps": [5, None], "last": [0.9, 0.6], "curve": [0.5, 0.75]}
    assert median_steps({"steps": [5, None, 10]}) == 10


def test_span_credit_learns_faster_than_one_reward_per_sequence() -> None:
    pupil, tokenizer = make_base_model(seed=0)
    last = {
        arm: fmean(train(make_trainer(pupil, tokenizer, arm, seed, 32, 25))[-1] for seed in (0, 1))
        for arm in (OURS, "sequence, lambda 1")
    }
    assert last[OURS] > last["sequence, lambda 1"] + 0.08


def test_blame_alone_does_not_teach_silence() -> None:
    pupil, tokenizer = make_base_model(seed=0)
    lengths = {}
    for arm in (OURS, "span, paper"):
        trainer = make_trainer(pupil, tokenizer, arm, 0, 32, 25, SILENCE_RATE)
        trainer.critic = RandomCritic()
        seen = [trainer.step(step)[0]["completions/mean_length"] for step in range(1, 26)]
        lengths[arm] = fmean(seen[-3:]) / fmean(seen[:3])
    assert lengths[OURS] > 0.85
    assert lengths["span, paper"] < 0.75
