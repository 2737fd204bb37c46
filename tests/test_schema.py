import gzip
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from pydantic import ValidationError

from text2grad.errors import UserError
from text2grad.schema import (
    Example,
    Feedback,
    Message,
    Omission,
    Span,
    from_dataset,
    read_examples,
    to_dataset,
    validate,
    write_examples,
)


def full_example(prompt: str | list[Message] = "Summarise.") -> Example:
    critique = 'It invents "Friday" and leaves out the price.'
    return Example(
        id="a-1",
        prompt=prompt,
        completion="They met on Friday 🎉.",
        reference=["They met on Monday."],
        tests="assert True",
        feedback=Feedback(
            critique=critique,
            spans=[
                Span(start=12, end=18, label="poor", severity=0.5, phrase=(12, 18), reason="not in the source"),
                Span(start=12, end=18, label="poor", replacement="Monday"),
                Span(start=18, end=20, label="poor", replacement=""),
            ],
            omissions=[
                Omission(text="the price", phrase=(34, 43)),
                Omission(text="the place", insert_at=21, insertion=" In Rome 🎉."),
            ],
            unmatched=["elsewhere"],
            scores=[(0, 4, 0.25)],
            score=-1.5,
            critic="human",
        ),
        meta={"source": {"page": 3}},
    )


@pytest.mark.parametrize("prompt", ["Summarise.", [Message(role="user", content="Summarise.")]])
def test_json_lines_and_datasets_round_trip(tmp_path: Path, prompt: str | list[Message]) -> None:
    examples = [full_example(prompt), Example(id="b", prompt=prompt)]
    write_examples(tmp_path / "data.jsonl", examples)
    assert list(read_examples(tmp_path / "data.jsonl")) == examples
    assert list(from_dataset(to_dataset(examples))) == examples


def test_rows_of_a_dataset_may_have_numbers_as_ids() -> None:
    dataset = Dataset.from_list([{"id": 7, "prompt": "p"}, {"id": None, "prompt": "q"}])
    assert [example.id for example in from_dataset(dataset)] == ["7", "1"]


def test_rows_of_a_dataset_may_be_in_chat_format() -> None:
    asked, said = {"role": "user", "content": "When?"}, {"role": "assistant", "content": "On Friday."}
    dataset = Dataset.from_list([{"prompt": [asked | {"name": None}], "completion": [said]}])
    (example,) = from_dataset(dataset)
    assert (example.prompt, example.completion) == ([Message(role="user", content="When?")], "On Friday.")
    two = Dataset.from_list([{"prompt": [asked], "completion": [said, said]}])
    with pytest.raises(UserError, match="row 0: completion: "):
        list(from_dataset(two))


@pytest.mark.parametrize("column", ["feedback", "meta"])
def test_a_column_of_a_dataset_that_is_no_json_is_named(column: str) -> None:
    dataset = Dataset.from_list([{"prompt": "p", column: None}, {"prompt": "q", column: "too long"}])
    with pytest.raises(UserError, match=f"row 1: {column} is a text that is not JSON"):
        list(from_dataset(dataset))


def test_unknown_fields_of_an_example_are_kept_in_meta() -> None:
    example = Example.model_validate({"id": "1", "prompt": "p", "topic": "rain", "meta": {"page": 2}})
    assert example.meta == {"page": 2, "topic": "rain"}


def test_span_takes_its_critic_from_the_feedback() -> None:
    assert Feedback(critic="lint", spans=[Span(start=0, end=1, label="poor")]).spans[0].critic == "lint"


@pytest.mark.parametrize(
    ("record", "says"),
    [
        (
            '{"id": "1", "prompt": "p", "completion": "abc", "feedback": {"critic": "c", "spans": '
            '[{"start": 0, "end": 2, "label": "good"}, {"start": 1, "end": 9, "label": "poor"}]}}',
            "feedback.spans[1].end is 9 but the completion has 3 characters",
        ),
        (
            '{"id": "1", "prompt": "", "feedback": {"critic": "", "spans": [{"start": 2, "end": 2, "label": "good"}]}}',
            "feedback.spans[0]: end is 2 but start is 2",
        ),
        (
            '{"id": "1", "prompt": "p", "feedback": {"critic": "c", "critique": "bad", "omissions": '
            '[{"text": "x", "phrase": [0, 5]}]}}',
            "omissions[0].phrase.end is 5 but the critique has 3 characters",
        ),
        ('{"id": "1", "prompt": "p", "feedback": {"critic": "c", "status": "failed"}}', "give the reason"),
        ('{"id": "1", "prompt": "p", "feedback": {"critic": "c", "spams": []}}', "feedback.spams"),
        ('{"id": "1"}', "prompt: Field required"),
        ('{"id": "1", "prompt": ', "Invalid JSON"),
    ],
)
def test_an_error_names_file_line_and_field(tmp_path: Path, record: str, says: str) -> None:
    path = tmp_path / "feedback.jsonl"
    path.write_text('{"id": "0", "prompt": "fine"}\n\n' + record + "\n")
    with pytest.raises(UserError) as error:
        list(read_examples(path))
    assert str(error.value).startswith(f"{path}:3: ")
    assert says in str(error.value)


def test_a_json_error_names_the_column_and_the_line_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "feedback.jsonl"
    path.write_text('{"id": "0", "prompt": "fine"}\n{"id": "1" "prompt"}\n')
    with pytest.raises(UserError, match=r":2: Invalid JSON: expected .* at column 12$"):
        list(read_examples(path))


def test_files_may_be_gzipped_and_may_start_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "marked.jsonl").write_text('{"id": "0", "prompt": "é"}\n', encoding="utf-8-sig")
    with gzip.open(tmp_path / "packed.jsonl.gz", "wt", encoding="utf-8") as out:
        out.write('{"id": "0", "prompt": "é"}\n')
    for name in ("marked.jsonl", "packed.jsonl.gz"):
        assert [example.prompt for example in read_examples(tmp_path / name)] == ["é"]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("latin.jsonl", b'{"id": "0", "prompt": "\xe9"}\n', "not UTF-8"),
        (
            "torn.jsonl.gz",
            gzip.compress(b'{"id": "0", "prompt": "p"}\n' * 99, mtime=0)[:-9],
            "not a complete gzip file",
        ),
        ("plain.jsonl.gz", b'{"id": "0", "prompt": "p"}\n', "not a complete gzip file"),
    ],
)
def test_an_unreadable_file_is_named(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=says) as error:
        list(read_examples(tmp_path / name))
    assert name in str(error.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nowhere\.jsonl: no such file"):
        list(read_examples(tmp_path / "nowhere.jsonl"))


def test_a_dataset_with_mixed_prompts_is_refused() -> None:
    mixed = [Example(id="1", prompt="p"), Example(id="2", prompt=[Message(role="user", content="p")])]
    with pytest.raises(UserError, match="prompt is a string in some"):
        to_dataset(mixed)


def test_severity_and_confidence_have_bounds() -> None:
    for field, value in [("severity", 0.0), ("severity", 1.1), ("confidence", -0.1), ("confidence", 1.1)]:
        with pytest.raises(ValidationError, match=field):
            Span.model_validate({"start": 0, "end": 1, "label": "poor", field: value})


def test_an_empty_reference_is_none_and_meta_must_be_a_mapping(tmp_path: Path) -> None:
    assert Example.model_validate({"id": "1", "prompt": "p", "reference": []}).reference is None
    (tmp_path / "x.jsonl").write_text('{"id": "1", "prompt": "p", "meta": [1]}\n')
    with pytest.raises(UserError, match=r"x.jsonl:1: meta"):
        list(read_examples(tmp_path / "x.jsonl"))


@pytest.mark.parametrize(
    ("feedback", "says"),
    [
        ({"spans": [{"start": 0, "end": 4, "label": "good", "replacement": "We"}]}, 'label is "good": only blamed'),
        ({"omissions": [{"text": "x", "insert_at": 3}]}, "insert_at is given without insertion"),
        ({"omissions": [{"text": "x", "insertion": "x"}]}, "insertion is given without insert_at"),
        ({"omissions": [{"text": "x", "insert_at": 3, "insertion": ""}]}, r"omissions\[0\]\.insertion"),
        ({"omissions": [{"text": "x", "insert_at": 30, "insertion": "x"}]}, "insert_at is 30 but the completion has 9"),
    ],
)
def test_corrections_that_make_no_sense_are_refused(feedback: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        validate(
            Example, {"id": "1", "prompt": "", "completion": "They met.", "feedback": {"critic": "c"} | feedback}, ""
        )


def test_an_insertion_at_the_end_is_inside_the_completion() -> None:
    omission = Omission(text="when", insert_at=9, insertion=" Today.")
    feedback = Feedback(critic="c", omissions=[omission])
    assert Example(id="1", prompt="", completion="They met.", feedback=feedback).feedback == feedback
