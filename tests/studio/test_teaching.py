from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from text2grad.checkpoint.export import export
from text2grad.errors import UserError
from text2grad.models.loading import load_model, load_tokenizer
from text2grad.schema import Example, Feedback, Omission, Span
from text2grad.studio.teaching import SETTINGS, Teacher

ANSWER = "The lazy fox jumps over the dog."
FEEDBACK = Feedback(
    critic="human",
    spans=[
        Span(start=4, end=8, label="poor", replacement="quick"),
        Span(start=9, end=12, label="good"),
    ],
)
EXAMPLE = Example(id="a", prompt="Write a sentence.", completion=ANSWER)
CONTROLS = ["The text in one sentence: 123.", "Write."]
FAST = SETTINGS.model_copy(update={"learning_rate": 1e-2, "max_completion_length": 6})


@pytest.fixture
def teacher(tiny_model: Path) -> Teacher:
    return Teacher(str(tiny_model), device="cpu", settings=FAST)


def weights(teacher: Teacher) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in teacher.policy.named_parameters()}


def assert_same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_blamed_tokens_fall_praised_tokens_and_corrections_rise(teacher: Teacher) -> None:
    lesson = teacher.teach([(EXAMPLE, FEEDBACK)], CONTROLS)
    (answer,) = lesson.answers
    assert "".join(row.text for row in answer.tokens) == ANSWER
    blamed = [row for row in answer.tokens if row.reward < 0]
    praised = [row for row in answer.tokens if row.reward > 0]
    assert "".join(row.text for row in blamed).strip() == "lazy"
    assert sum(row.after for row in blamed) < sum(row.before for row in blamed)
    assert sum(row.after for row in praised) > sum(row.before for row in praised)
    (correction,) = answer.corrections
    assert "".join(row.text for row in correction.tokens) == " quick"
    assert all(row.after > row.before for row in correction.tokens)
    assert ANSWER.startswith("".join(row.text for row in answer.tokens[: correction.token]))
    assert lesson.seconds > 0
    assert json.loads(lesson.model_dump_json())["answers"][0]["tokens"][0]["text"]


def test_controls_are_measured_and_their_answers_shown(teacher: Teacher) -> None:
    before = [teacher.generate(prompt) for prompt in CONTROLS]
    lesson = teacher.teach([(EXAMPLE, FEEDBACK)], CONTROLS)
    assert [control.prompt for control in lesson.controls] == CONTROLS
    assert [control.answer_before for control in lesson.controls] == before
    assert [control.answer_after for control in lesson.controls] == [teacher.generate(p) for p in CONTROLS]
    assert all(control.nats_per_token > 0 for control in lesson.controls)
    assert lesson.answers[0].answer_after == teacher.generate("Write a sentence.")


def test_no_token_moves_much_further_than_the_bound(teacher: Teacher) -> None:
    long = teacher.settings.model_copy(
        update={"num_iterations": 40, "learning_rate": 1e-3, "epsilon": 0.3, "beta": 0.0}
    )
    teacher.settings = long
    lesson = teacher.teach([(EXAMPLE, Feedback(critic="human", spans=[Span(start=4, end=8, label="poor")]))])
    ratios = [row.after / row.before for row in lesson.answers[0].tokens if row.reward < 0]
    assert all(0.5 < ratio < 1 for ratio in ratios)


def test_a_discarded_lesson_leaves_the_weights_bit_for_bit(teacher: Teacher) -> None:
    before = weights(teacher)
    lesson = teacher.teach([(EXAMPLE, FEEDBACK)])
    assert any(not torch.equal(before[name], value) for name, value in weights(teacher).items())
    teacher.discard(lesson.id)
    assert_same(before, weights(teacher))
    assert teacher.pending is None


def test_undo_takes_back_the_last_kept_lesson_only(teacher: Teacher) -> None:
    states = [weights(teacher)]
    for _ in range(2):
        teacher.keep(teacher.teach([(EXAMPLE, FEEDBACK)]).id)
        states.append(weights(teacher))
    assert teacher.kept == ["lesson-1", "lesson-2"]
    assert teacher.undo() == "lesson-2"
    assert_same(states[1], weights(teacher))
    assert teacher.undo() == "lesson-1"
    assert_same(states[0], weights(teacher))
    with pytest.raises(UserError, match="none was kept"):
        teacher.undo()


def test_the_same_lesson_twice_is_the_same(teacher: Teacher) -> None:
    first = teacher.teach([(EXAMPLE, FEEDBACK)], CONTROLS)
    teacher.discard(first.id)
    second = teacher.teach([(EXAMPLE, FEEDBACK)], CONTROLS)
    assert second.answers == first.answers
    assert second.controls == first.controls


def test_a_lesson_waits_for_a_decision(teacher: Teacher) -> None:
    lesson = teacher.teach([(EXAMPLE, FEEDBACK)])
    with pytest.raises(UserError, match="lesson-1 is neither kept nor discarded"):
        teacher.teach([(EXAMPLE, FEEDBACK)])
    with pytest.raises(UserError, match="lesson-1 is neither kept nor discarded"):
        teacher.undo()
    with pytest.raises(UserError, match='"lesson-9" is not the one that waits'):
        teacher.keep("lesson-9")
    assert teacher.pending == lesson.id


@pytest.mark.parametrize(
    ("example", "feedback", "message"),
    [
        (EXAMPLE, Feedback(critic="human"), "no words"),
        (EXAMPLE, Feedback.failure("human", "no reply"), "failed: no reply"),
        (EXAMPLE, Feedback(critic="human", spans=[Span(start=30, end=40, label="poor")]), "has 32 characters"),
        (EXAMPLE.model_copy(update={"completion": ""}), FEEDBACK, "cannot be taught"),
        (EXAMPLE.model_copy(update={"completion": ANSWER * 60}), FEEDBACK, "longer than 512 tokens"),
        (EXAMPLE.model_copy(update={"prompt": " "}), FEEDBACK, "is empty"),
    ],
)
def test_what_cannot_be_taught_is_said_and_changes_nothing(
    teacher: Teacher, example: Example, feedback: Feedback, message: str
) -> None:
    before = weights(teacher)
    with pytest.raises(UserError, match=message):
        teacher.teach([(example, feedback)])
    assert_same(before, weights(teacher))
    assert teacher.pending is None


def test_a_lesson_that_breaks_off_changes_nothing(teacher: Teacher, monkeypatch: pytest.MonkeyPatch) -> None:
    before, generate, calls = weights(teacher), teacher._generate, []

    def fail_afterwards(prompts: Sequence[list[int]]) -> list[list[int]]:
        calls.append(len(prompts))
        if len(calls) > 1:
            raise MemoryError
        return generate(prompts)

    monkeypatch.setattr(teacher, "_generate", fail_afterwards)
    with pytest.raises(MemoryError):
        teacher.teach([(EXAMPLE, FEEDBACK)], CONTROLS)
    assert_same(before, weights(teacher))
    assert teacher.pending is None


def test_a_lesson_that_cannot_be_computed_changes_nothing(teacher: Teacher) -> None:
    teacher.settings = teacher.settings.model_copy(update={"rollback_kl": 1e-9})
    before = weights(teacher)
    with pytest.raises(UserError, match=r"more than rollback_kl .* nothing was changed"):
        teacher.teach([(EXAMPLE, FEEDBACK)])
    assert_same(before, weights(teacher))


def test_what_is_missing_can_be_taught(teacher: Teacher) -> None:
    missing = Omission(text="the place", insert_at=len(ANSWER) - 1, insertion=" in a dog")
    lesson = teacher.teach([(EXAMPLE, Feedback(critic="human", omissions=[missing]))])
    (correction,) = lesson.answers[0].corrections
    assert "".join(row.text for row in correction.tokens).startswith(" in a dog")


def test_a_saved_adapter_can_be_exported(tiny_model: Path, tmp_path: Path) -> None:
    exact = FAST.model_copy(update={"bf16": False})  # in bfloat16 two tokens of a random model may be equally probable
    teacher = Teacher(str(tiny_model), device="cpu", settings=exact)
    teacher.keep(teacher.teach([(EXAMPLE, FEEDBACK)]).id)
    answer = teacher.generate("Write a sentence.")
    teacher.save(tmp_path / "taught")
    export(tmp_path / "taught", tmp_path / "merged", "float32")
    again = Teacher(str(tmp_path / "merged"), device="cpu", settings=exact)
    assert again.generate("Write a sentence.") == answer
    assert load_tokenizer(tmp_path / "merged").eos_token == "<|im_end|>"
    base, merged = load_model(teacher.model_name).state_dict(), load_model(tmp_path / "merged").state_dict()
    assert any(not torch.equal(base[name], merged[name]) for name in base)
