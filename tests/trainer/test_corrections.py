"""Corrections in a training step: what they move, how they are averaged, and what happens where there are none."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from support import MakeTrainer, Seen, VowelCritic, weights

from text2grad import Text2GradTrainer
from text2grad.models.batching import Branch
from text2grad.schema import Example, Feedback, Omission, Span
from text2grad.trainer.config import CorrectionSettings
from text2grad.trainer.corrections import CorrectionBatch, corrections_loss
from text2grad.trainer.scoring import score_with_branches


class Replacing(VowelCritic):
    """Blames the third character of each completion, which should be a z, and misses one at the end of some."""

    def __init__(self, failing: Sequence[int] = (), corrects: bool = True) -> None:
        super().__init__(failing)
        self.corrects = corrects

    def comment(self, example: Example) -> Feedback:
        place: dict[str, Any] = {"start": 2, "end": 3, "label": "poor", "severity": 0.5}
        text = example.completion
        if not self.corrects or len(text) < 4:
            return Feedback(spans=[Span(**place)] if len(text) > 2 else [], critic="z")
        missing = [Omission(text="q", insert_at=1, insertion="qq", severity=0.25)] if int(example.id) % 2 else []
        return Feedback(spans=[Span(**place, replacement="z")], omissions=missing, critic="z")


def branch_probability(trainer: Text2GradTrainer, seen: list[CorrectionBatch], rollout: Any) -> float:
    (corrections,) = seen
    _, logprobs = score_with_branches(trainer.learner, rollout, range(4), trainer.args, False, corrections.branches)
    return sum(float(line.exp().mean()) for line in corrections.split(logprobs).values()) / len(corrections)


def stepped(trainer: Text2GradTrainer, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, Any], float]:
    """Run a step; returns its metrics, and the mean probability of the corrections afterwards."""
    seen: list[CorrectionBatch] = []
    find = trainer.find_corrections

    def recording(*arguments: Any) -> CorrectionBatch:
        seen.append(find(*arguments))
        return seen[-1]

    monkeypatch.setattr(trainer, "find_corrections", recording)
    rollout = trainer.rollout(1)
    metrics, _ = trainer.step(1)
    return metrics, branch_probability(trainer, seen, rollout)


def test_corrections_become_more_probable_and_are_counted(
    make_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics, after = stepped(make_trainer(critic=Replacing(), lora=False), monkeypatch)
    assert metrics["corrections/count"] == 6
    assert metrics["corrections/refused"] == 0
    assert 0 < metrics["corrections/probability"] < 0.1
    assert metrics["corrections/loss"] > 0
    assert after > 1.2 * metrics["corrections/probability"]
    change = after - metrics["corrections/probability"]  # all four completions are logged
    assert metrics["corrections/probability_change"] == pytest.approx(change, rel=1e-3)
    weightless = make_trainer("without", critic=Replacing(), lora=False, corrections={"weight": 1e-9})
    without, unmoved = stepped(weightless, monkeypatch)
    assert without["corrections/probability"] == pytest.approx(metrics["corrections/probability"], rel=1e-5)
    assert unmoved < after


class ReplacingOne(VowelCritic):
    """Corrects the first completion only."""

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        corrected = Feedback(spans=[Span(start=2, end=3, label="poor", replacement="z")], critic="z")
        others = [Feedback.failure("z", "planted") if i in self.failing else Feedback(critic="z") for i in range(1, 4)]
        return [corrected, *others]


def test_few_corrections_count_less_than_many(make_trainer: MakeTrainer) -> None:
    """Without rewards, the gradient is that of the corrections: one in four completions, and one in one."""
    alone = {"reward_clip": 1e-9, "advantage_normalization": "none", "beta": 0.0, "max_grad_norm": 1e6, "lora": False}
    one_in_four, _ = make_trainer("four", critic=ReplacingOne(), **alone).step(1)
    one_in_one, _ = make_trainer("one", critic=ReplacingOne(failing=[1, 2, 3]), **alone).step(1)
    assert one_in_four["corrections/count"] == one_in_one["corrections/count"] == 1
    assert one_in_four["corrections/loss"] == pytest.approx(one_in_one["corrections/loss"])
    assert one_in_one["grad_norm"] == pytest.approx(4 * one_in_four["grad_norm"], rel=1e-3)


def test_logged_samples_tell_what_became_of_their_corrections(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(critic=Replacing(), num_logged_completions=2)
    metrics, samples = trainer.step(1)
    logged = [correction for sample in samples for correction in sample["corrections"]]
    assert 0 < len(logged) < metrics["corrections/count"]  # of four samples, two are logged
    changes = [correction["after"] - correction["before"] for correction in logged]
    assert sum(changes) / len(changes) == pytest.approx(metrics["corrections/probability_change"], rel=1e-3)
    for sample in samples:
        for correction in sample["corrections"]:
            start, end = correction["start"], correction["end"]
            assert 0 <= start < end <= len(sample["tokens"])
            assert any(mark in correction["text"] for mark in "zq")


def test_without_weight_or_without_replacements_the_step_is_the_same_to_the_bit(make_trainer: MakeTrainer) -> None:
    runs = {
        "weight 0": make_trainer("0", critic=Changed(_without_places), corrections={"weight": 0.0}),
        "no omissions": make_trainer("1", critic=Replacing(corrects=False)),
        "no weight": make_trainer("2", critic=Replacing(corrects=False), corrections={"weight": 0.0}),
    }
    for trainer in runs.values():
        trainer.step(1)
    torch.testing.assert_close(weights(runs["no omissions"]), weights(runs["no weight"]), rtol=0, atol=0)
    same = make_trainer("3", critic=Changed(_without_replacements), corrections={"weight": 7.0})
    metrics, _ = same.step(1)
    assert metrics["corrections/count"] == 0
    assert "corrections/loss" not in metrics
    torch.testing.assert_close(weights(runs["weight 0"]), weights(same), rtol=0, atol=0)


class Changed(Replacing):
    def __init__(self, change: Callable[[Feedback], Feedback]) -> None:
        super().__init__()
        self.change = change

    def comment(self, example: Example) -> Feedback:
        return self.change(super().comment(example))


def _without_places(feedback: Feedback) -> Feedback:
    """Places of missing words matter to span credit too."""
    omissions = [o.model_copy(update={"insert_at": None, "insertion": None}) for o in feedback.omissions]
    return feedback.model_copy(update={"omissions": omissions})


def _without_replacements(feedback: Feedback) -> Feedback:
    spans = [span.model_copy(update={"replacement": None}) for span in feedback.spans]
    return _without_places(feedback).model_copy(update={"spans": spans})


LAYOUTS: dict[str, dict[str, Any]] = {
    "padded, one row at a time": {"share_prompts": False, "max_tokens_per_batch": 1},
    "padded": {"share_prompts": False, "max_tokens_per_batch": 10**6},
    "shared": {"share_prompts": True, "max_tokens_per_batch": 10**6},
    "shared and split": {"share_prompts": True, "max_tokens_per_batch": 64},
}


@pytest.mark.parametrize("lora", [True, False])
def test_every_layout_makes_the_same_update(make_trainer: MakeTrainer, lora: bool) -> None:
    common = {
        "critic": Replacing(failing=[2]),
        "per_device_train_batch_size": 8,
        "num_generations": 4,
        "num_iterations": 2,
        "learning_rate": 1e-3,
        "max_grad_norm": 1e6,
        "corrections": {"weight": 1.0, "contrast": 0.5, "kl": 0.5, "continuation": 1},
        "lora": lora,
    }
    results = []
    for name, layout in LAYOUTS.items():
        trainer = make_trainer(name, **common, **layout)
        metrics, _ = trainer.step(1)
        results.append((metrics, weights(trainer)))
    (expected, trained), *others = results
    assert expected["corrections/count"] > 5
    for metrics, found in others:
        # Adam divides by the gradient, so rounding shows where a gradient is nearly 0; two steps move up to 2e-3
        torch.testing.assert_close(found, trained, rtol=1e-4, atol=5e-5)
        for key in ("corrections/loss", "corrections/probability", "policy_loss", "grad_norm"):
            assert metrics[key] == pytest.approx(expected[key], rel=1e-4)


def test_a_correction_of_a_failed_critique_does_not_count(make_trainer: MakeTrainer) -> None:
    every, some = make_trainer("every", critic=Replacing()), make_trainer("some", critic=Replacing(failing=[0, 1]))
    counts = [trainer.step(1)[0]["corrections/count"] for trainer in (every, some)]
    assert counts[0] == 6
    assert counts[1] < 6


def test_what_does_not_fit_the_context_is_refused(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(critic=Replacing())
    trainer.context = min(map(len, trainer.prompts)) + 1
    metrics, _ = trainer.step(1)
    assert metrics["corrections/count"] + metrics["corrections/refused"] == 6
    assert metrics["corrections/refused"] > 0


class CorrectingTwice(VowelCritic):
    """Asks for a z in the place of the second character, and for a long addition before the last one."""

    def comment(self, example: Example) -> Feedback:
        end = len(example.completion)
        added = Omission(text="more", insert_at=end - 1, insertion="qqqqqqqqqqqqqqqq") if end > 2 else None
        return Feedback(
            spans=[Span(start=1, end=2, label="poor", replacement="z")],
            omissions=[added] if added else [],
            critic="z",
        )


def test_a_correction_that_fits_the_context_is_kept_without_a_later_one(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(critic=CorrectingTwice())
    rollout = trainer.rollout(1)
    feedback = trainer.critic.critique(rollout.examples)
    everything = trainer.find_corrections(rollout, feedback)
    lengths = [len(p) + len(c) for p, c in zip(rollout.prompts, rollout.completions, strict=True)]
    trainer.context = max(lengths) + 2
    some = trainer.find_corrections(rollout, feedback)
    assert everything.refused == 0
    assert len(everything) == 8
    assert len(some) + some.refused == 8
    assert some.refused >= 1
    for k, branch in enumerate(some.branches):
        assert len(rollout.prompts[branch.sample]) + branch.start + len(branch.ids) <= trainer.context
        assert len(branch.ids) == max(last for number, (_, last) in some.places if number == k)


def test_a_truncated_completion_that_is_masked_has_none(make_trainer: MakeTrainer) -> None:
    """No completion of the tiny model ends within ten tokens."""
    metrics, _ = make_trainer(critic=Replacing(), mask_truncated_completions=True).step(1)
    assert metrics["corrections/count"] == metrics["num_updates"] == 0


def test_a_resumed_run_is_the_uninterrupted_one(make_trainer: MakeTrainer) -> None:
    whole, part, seen = make_trainer("whole", critic=Replacing()), make_trainer("part", critic=Replacing()), Seen()
    whole.train()
    part.args = replace_steps(part, 1)
    part.train()
    resumed = make_trainer("part", critic=Replacing(), callbacks=[seen])
    resumed.train(resume=True)
    assert [metrics["step"] for metrics in seen.steps] == [2, 3]
    assert all(metrics["corrections/count"] for metrics in seen.steps)
    torch.testing.assert_close(weights(resumed), weights(whole), rtol=0, atol=0)


def replace_steps(trainer: Text2GradTrainer, steps: int) -> Any:
    return trainer.args.model_copy(update={"max_steps": steps})


# Two corrections of two samples: the tokens .45 and .225, and .3.
CORRECTIONS = CorrectionBatch(
    branches=[Branch(4, 1, [7, 8]), Branch(2, 0, [9])],
    places=[(0, (0, 2)), (1, (0, 1))],
    weights=torch.tensor([1.0, 0.5]),
    mask=torch.tensor([[1.0, 1.0], [1.0, 0.0]]),
    replaced=torch.tensor([[0.0, 1.0, 1.0], [0.0, 0.0, 0.0]]),
    refused=0,
    reference_logprobs=torch.tensor([[0.225, 0.225], [0.6, 1.0]]).log(),
)
BRANCHES = torch.tensor([[0.45, 0.225], [0.3, 1.0]]).log()
COMPLETIONS = torch.tensor([[0.5, 0.5, 0.5], [0.9, 0.1, 0.4]]).log()  # of the samples 2 and 4


def loss(**settings: float) -> float:
    plain = {"contrast": 0.0, "kl": 0.0, "target_probability": 0.9, "robustness": 0.0}
    chosen = CorrectionSettings(**(plain | settings))
    return corrections_loss(COMPLETIONS, BRANCHES, [2, 4], [0, 1], CORRECTIONS, chosen).item()


LIKELIHOOD = 1.5 * math.log(2) + 0.5 * math.log(3)


def test_the_loss_by_hand() -> None:
    assert loss() == pytest.approx(LIKELIHOOD)
    # geometric means: .318 of the correction against .2 of what was written; the second replaces nothing
    corrected, written = math.sqrt(0.45 * 0.225), math.sqrt(0.1 * 0.4)
    assert loss(contrast=0.5) == pytest.approx(LIKELIHOOD - 0.5 * math.log(corrected / (corrected + written)))
    # ratios of the reference to the policy: 1/2 and 1, 2
    kl = (0.5 - 1 + math.log(2)) / 2 + (2 - 1 - math.log(2))
    assert loss(kl=0.1) == pytest.approx(LIKELIHOOD + 0.1 * kl)


def test_the_order_in_a_micro_batch_does_not_matter() -> None:
    settings = CorrectionSettings(contrast=0.5, kl=0.1)
    flipped = corrections_loss(COMPLETIONS, BRANCHES.flip(0), [2, 4], [1, 0], CORRECTIONS, settings)
    plain = corrections_loss(COMPLETIONS, BRANCHES, [2, 4], [0, 1], CORRECTIONS, settings)
    assert flipped.item() == pytest.approx(plain.item())
    only = replace(CORRECTIONS, reference_logprobs=None)
    first, second = (corrections_loss(COMPLETIONS, BRANCHES[[k]], [2, 4], [k], only, settings).item() for k in range(2))
    assert first + second == pytest.approx(
        corrections_loss(COMPLETIONS, BRANCHES, [2, 4], [0, 1], only, settings).item()
    )


def test_log_probabilities_of_corrections_are_gathered_from_those_of_their_branches() -> None:
    """Two corrections in the first branch, one token apart, and one in the second."""
    corrections = CorrectionBatch(
        branches=[Branch(0, 0, [1, 2, 3, 4]), Branch(3, 2, [5, 6])],
        places=[(0, (0, 1)), (0, (2, 4)), (1, (0, 2))],
        weights=torch.ones(3),
        mask=torch.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 1.0]]),
        replaced=torch.zeros(3, 4),
        refused=0,
    )
    lines = torch.tensor([[-1.0, -2.0, -3.0, -4.0], [-5.0, -6.0, 0.0, 0.0]])
    expected = [[-1.0, 0.0], [-3.0, -4.0], [-5.0, -6.0]]
    assert corrections.gather(lines, [0, 1], [0, 1, 2]).tolist() == expected
    assert corrections.gather(lines.flip(0), [1, 0], [0, 1, 2]).tolist() == expected
    assert corrections.inside([1]) == [2]
    assert corrections.gather(lines[1:], [1], [2]).tolist() == expected[2:]
    assert corrections.tokens(1, [8, 9]) == ([1, 2], [3, 4])
    assert corrections.tokens(2, [8, 9, 7]) == ([8, 9], [5, 6])
    assert [corrections.sample(k) for k in range(3)] == [0, 0, 3]
    split = corrections.split({0: lines[0], 1: lines[1, :2]})
    assert [split[k].tolist() for k in range(3)] == [[-1.0], [-3.0, -4.0], [-5.0, -6.0]]
    assert corrections.split({1: lines[1, :2]}).keys() == {2}
    found = corrections.with_reference({0: lines[0], 1: lines[1, :2]}).reference_logprobs
    assert found is not None
    assert found.tolist() == expected


def test_what_is_between_two_corrections_is_read_but_not_learned(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(critic=Replacing(), lora=False)
    rollout = trainer.rollout(1)
    feedback = trainer.critic.critique(rollout.examples)
    together = trainer.find_corrections(rollout, feedback)
    trainer.args = trainer.args.model_copy(update={"corrections": CorrectionSettings(prefix="sampled")})
    apart = trainer.find_corrections(rollout, feedback)
    assert len(together) == len(apart) == len(apart.branches) == 6
    assert len(together.branches) == 4, "one per completion"
    second = next(k for k, (branch, (first, _)) in enumerate(together.places) if first)
    branch, (first, last) = together.places[second]
    assert last <= len(together.branches[branch].ids)
    assert float(together.mask[second].sum()) == last - first < len(together.branches[branch].ids)
