from text2grad.schema import Example, Message
from text2grad.trainer.data_checks import data_warnings


def example(name: str, prompt: str) -> Example:
    return Example(id=name, prompt=prompt)


def test_separate_sets_cause_no_warning() -> None:
    assert data_warnings([example("1", "a"), example("2", "a")], [example("1", "b")]) == []
    assert data_warnings([], []) == []


def test_duplicate_ids_and_leaked_prompts_are_counted() -> None:
    train = [example("1", "a"), example("1", "b"), example("2", "c"), example("2", "d"), example("2", "e")]
    conversation = Example(id="x", prompt=[Message(role="user", content="c")])
    assert data_warnings(train, [example("h", "a"), conversation, example("h", "z")]) == [
        'ids that several training examples have: 2, as "1"',
        'ids that several held-out examples have: 1, as "h"',
        'held-out examples whose prompt is also trained on: 2 of 3, as "h"; their scores do not show what is learned '
        "beyond the training data",
    ]
