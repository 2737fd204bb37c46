"""Columns of any name become the fields of an example; prompts in chat format are kept as conversations."""

from __future__ import annotations

import datetime
import json

import pytest
from datasets import Dataset

from text2grad.config.run import load_config
from text2grad.data.columns import row_to_example
from text2grad.data.registry import load_examples
from text2grad.data.rows import Row
from text2grad.errors import UserError
from text2grad.schema import Example, Feedback, Message, Span, to_dataset

USER, ANSWER = {"role": "user", "content": "And then?"}, {"role": "assistant", "content": "Then we go."}
TURNS = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi."}, ANSWER, USER]


def example(columns=None, **fields):
    return row_to_example(Row("file:1", "row-1", fields), columns or {})


def test_columns_are_renamed_and_the_rest_is_kept():
    made = example({"prompt": "question", "reference": "answer"}, question="Who?", answer="Ann", level=3, hint=None)
    assert made == Example(id="row-1", prompt="Who?", reference="Ann", meta={"level": 3})


def test_a_prompt_may_be_put_together():
    made = example({"prompt": "{context}\n\nQ: {question}"}, context="A {b} c.", question="Why?", id=7)
    assert (made.prompt, made.id, made.meta) == ("A {b} c.\n\nQ: Why?", "7", {})


def test_an_empty_cell_adds_nothing_to_a_prompt_that_is_put_together():
    made = example({"prompt": "{instruction}\n\n{input}"}, instruction="Name a colour.", input=None)
    assert made.prompt == "Name a colour.\n\n"


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        (
            {},
            r"file:1: no column prompt; there are question, answer: name it, as in data.columns=\{prompt: NAME\} or --",
        ),
        ({"prompt": "querstion"}, "file:1: no column querstion for prompt; there are question, answer"),
        ({"prompt": "{question} {hint}"}, "file:1: no column hint for prompt; there are question, answer"),
    ],
)
def test_a_missing_column_names_those_that_there_are(columns, says):
    with pytest.raises(UserError, match=says):
        example(columns, question="Who?", answer="Ann")


def test_a_field_that_no_example_has_is_refused(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"q": "a"}\n')
    with pytest.raises(UserError, match='"promt" is no field of an example; did you mean "prompt"'):
        load_examples(str(tmp_path / "a.jsonl"), "train", {"promt": "q"})


def test_a_conversation_is_the_prompt():
    made = example(prompt=TURNS)
    assert made.prompt == [Message(**turn) for turn in TURNS]
    assert made.reference is None


@pytest.mark.parametrize("name", ["messages", "conversations"])
def test_the_last_answer_of_a_conversation_is_its_reference(name):
    made = example(**{name: [*TURNS, ANSWER]})
    assert made.prompt == [Message(**turn) for turn in TURNS]
    assert made.reference == "Then we go."
    assert example(prompt=[USER, ANSWER], reference="mine").reference == "mine"


def test_other_forms_of_messages():
    share_gpt = [
        {"from": "human", "value": "Hi."},
        {"from": "gpt", "value": "Hello."},
        {"from": "human", "value": "So?"},
    ]
    assert [turn.role for turn in example(conversations=share_gpt).prompt] == ["user", "assistant", "user"]
    parts = {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "name": None}
    assert example(prompt=[parts]).prompt == [Message(role="user", content="ab")]
    assert example(prompt="p", completion=[ANSWER]).completion == "Then we go."


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"prompt": [{"role": "narrator", "content": "x"}]}, 'message 1 has the role "narrator"'),
        ({"prompt": [USER, {"role": "assistant", "content": None}]}, r"message 2 \(assistant\) has no text"),
        ({"prompt": [{"role": "user", "content": [{"type": "image"}]}]}, r"message 1 \(user\) has no text"),
        ({"prompt": "p", "completion": [ANSWER, USER]}, "the completion has 2 messages; it must be one"),
        ({"prompt": 3}, "prompt"),
        ({"prompt": "p", "meta": "{"}, "file:1: Expecting property name"),
    ],
)
def test_broken_rows_are_named(fields, says):
    with pytest.raises(UserError, match=f"file:1: .*{says}|{says}"):
        example(**fields)


def test_what_json_cannot_hold_is_left_out_of_meta():
    day = datetime.date(2026, 1, 2)
    made = example(prompt="p", image=b"\0", day=day, loss=float("nan"), ratios=[1.0, float("inf")], nested={"a": None})
    assert made.meta == {"day": "2026-01-02", "ratios": [1.0, None], "nested": {"a": None}}
    json.dumps(made.meta, allow_nan=False)


def test_datasets_of_ours_are_read_back(tmp_path):
    said = Feedback(critic="c", critique="No.", spans=[Span(start=0, end=2, label="poor")])
    examples = [Example(id="1", prompt="p", completion="On Friday", feedback=said, meta={"a": [1]}, reference="r")]
    to_dataset(examples).save_to_disk(tmp_path / "saved")
    assert load_examples(str(tmp_path / "saved"), "train") == examples


def test_prompts_of_a_dataset_in_a_run_config(tmp_path):
    Dataset.from_list([{"question": "Who?", "answer": "Ann"}]).to_parquet(tmp_path / "a.parquet")
    path = tmp_path / "run.yaml"
    path.write_text(f"data:\n  train: {tmp_path}/a.parquet\n  columns: {{prompt: question, reference: answer}}\n")
    data = load_config(path).data
    assert data.load_train() == [Example(id="a-0", prompt="Who?", reference="Ann")]
    (tmp_path / "h.jsonl").write_text('{"id": "h", "prompt": "Why?"}\n')
    heldout = data.model_copy(update={"eval": str(tmp_path / "h.jsonl")})
    with pytest.raises(UserError, match="no column question for prompt; there are id, prompt"):
        heldout.load_eval()
    assert heldout.model_copy(update={"eval_columns": {}}).load_eval() == [Example(id="h", prompt="Why?")]
    assert data.model_copy(update={"eval": None}).load_eval() == []
    assert load_config(None, ["data.columns={prompt: q}"]).data.columns == {"prompt": "q"}
