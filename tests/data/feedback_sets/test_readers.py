"""Readers of public feedback sets, on small files of the shape of each: counts, offsets, broken rows."""

from __future__ import annotations

import copy
import json

import pytest

from text2grad.critics.code.cases import parse_tests
from text2grad.data.feedback_sets.fields import checked_span, rescale
from text2grad.data.feedback_sets.helpsteer3 import helpfulness
from text2grad.data.importing import FEEDBACK_SETS, ImportSummary, import_feedback_set
from text2grad.errors import UserError
from text2grad.schema import Message

CONTEXT = [
    {"role": "user", "content": "Name a river."},
    {"role": "assistant", "content": "The Rhine."},
    {"role": "user", "content": "Where does it end?"},
]

SLF5K = {
    "id": "t3_1ab",
    "subreddit": "advice",
    "title": "My neighbour's tree",
    "post": "The tree of my neighbour drops its leaves into my pond, and he does not answer letters.",
    "tldr_human_reference_summary": "Neighbour's leaves fall into my pond.",
    "summary_prompt": "Write a summary of the given text.\n\nTitle: My neighbour's tree\n\nText: The tree\n\nTL;DR:",
    "generated_summary_for_comparison_A": "A tree.",
    "generated_summary_for_comparison_B": "A pond.",
    "generated_summary_for_feedback": "A neighbour refuses to cut his hedge.",
    "comparison_preference": "Summary A",
    "feedback": "It is a tree and not a hedge.",
    "feedback_class": "Accuracy",
    "has_additional_feedback": False,
    "ideal_human_summary": "Leaves of a neighbour's tree fall into my pond, and he does not answer.",
}

SHEPHERD = {
    "id": 3,
    "question": "Ann has 4 apples and eats 1. How many are left?",
    "answer": "Ann has 4 apples. 4 + 1 = 5. The answer is 5.\n\n",
    "feedback": '"4 + 1 = 5." The eaten apple should be subtracted. ',
    "meta": {"domain": "human annotation"},
}

HELPSTEER_FEEDBACK = {
    "domain": "general",
    "language": "english",
    "context": CONTEXT,
    "response1": "It ends in the North Sea.",
    "feedback1": ["The response is perfectly helpful. It is right.", "The response is mostly helpful.\nA bit short."],
    "response2": "In the Alps.",
    "feedback2": ["The response is not helpful. The Rhine begins there."],
}

HELPSTEER_PREFERENCE = {
    "domain": "general",
    "language": "english",
    "context": CONTEXT,
    "response1": "It ends in the North Sea.",
    "response2": "In the Alps.",
    "overall_preference": -3,
    "individual_preference": [
        {"score": -3, "reasoning": "@Response 1 is right.", "feedback1": "It is right.", "feedback2": "It is wrong."},
        {"score": -2, "reasoning": "Only the first is right.", "feedback1": None, "feedback2": None},
    ],
}


def rated(rating, rationale):
    return {"Rating": rating, "Rationale": rationale}


ULTRAFEEDBACK = {
    "source": "sharegpt",
    "instruction": "Name a river.",
    "models": ["alpaca-7b", "gpt-4"],
    "correct_answers": ["None"],
    "incorrect_answers": ["None"],
    "completions": [
        {
            "model": "alpaca-7b",
            "principle": "honesty",
            "custom_system_prompt": "Say what you do not know.",
            "response": "The Alps.",
            "annotations": {
                "instruction_following": rated("1", "It names no river."),
                "honesty": rated("N/A", ""),
                "truthfulness": {"Type": ["1"], "Rationale": "The Alps are mountains.", "Rating": "2"},
                "helpfulness": rated("1", "It names no river."),
            },
            "overall_score": 10.0,
            "fine-grained_score": 1.33,
            "critique": "The Alps are no river.",
        },
        {
            "model": "gpt-4",
            "principle": "helpfulness",
            "custom_system_prompt": "",
            "response": "The Rhine.",
            "annotations": {"instruction_following": rated("5", "It names a river."), "honesty": rated("5", "Sure.")},
            "overall_score": 9.0,
            "fine-grained_score": 5.0,
            "critique": "",
        },
    ],
}

RAGTRUTH = {
    "id": "12",
    "source_id": "7",
    "model": "llama-2-7b-chat",
    "temperature": 0.7,
    "labels": [
        {
            "start": 10, "end": 16, "text": "Friday", "meta": "HIGH CONFLICT\nThe source says Monday.",
            "label_type": "Evident Conflict", "implicit_true": False, "due_to_null": False,
        },
        {
            "start": 20, "end": 24, "text": "Rome", "meta": "", "label_type": "Subtle Baseless Info",
            "implicit_true": True, "due_to_null": False,
        },
    ],
    "split": "train",
    "quality": "good",
    "response": "We meet 😀 Friday in Rome.",
}  # fmt: skip
RAGTRUTH_SOURCE = {
    "source_id": "7",
    "task_type": "Summary",
    "source": "CNN/DM",
    "source_info": "The meeting is on Monday.",
    "prompt": "Summarize the following news within 9 words:\nThe meeting is on Monday.\noutput:",
}

FAITHBENCH = {
    "sample_id": 0,
    "source": "The film had a budget of 160 million.",
    "summary": "The film had a production budget of 160 million and was liked.",
    "annotations": [
        {
            "annot_id": 1, "annotator_id": "a1", "annotator_name": "x", "label": ["Unwanted", "Unwanted.Intrinsic"],
            "note": "budget is not\nproduction budget", "summary_span": "production", "summary_start": 15,
            "summary_end": 25, "source_span": None, "source_start": None, "source_end": None,
        },
        {
            "annot_id": 2, "annotator_id": "a2", "annotator_name": "y", "label": ["Questionable"], "note": "",
            "summary_span": "production", "summary_start": 15, "summary_end": 25,
        },
        {
            "annot_id": 3, "annotator_id": "a2", "annotator_name": "y", "label": ["Questionable"], "note": "",
            "summary_span": "was liked", "summary_start": 52, "summary_end": 61,
        },
        {
            "annot_id": 4, "annotator_id": "a2", "annotator_name": "y", "label": ["Benign"], "note": "true",
            "summary_span": "film", "summary_start": 4, "summary_end": 8,
        },
    ],
    "metadata": {"summarizer": "openai/gpt-4o", "raw_sample_id": 15},
}  # fmt: skip

KODCODE = {
    "version": "v1.0",
    "style": "instruct",
    "subset": "Prefill",
    "question_id": "Prefill_1_I",
    "question": "Write a function that doubles a number.",
    "solution": "def double(x):\n    return 2 * x",
    "test": "from solution import double\n\ndef test_two():\n    assert double(2) == 4\n\n"
    "def test_zero():\n    assert double(0) == 0",
    "test_info": [
        {"function_name": "double", "parameter_list": "(x)", "function_declaration": "def double(x):", "docstring": ""}
    ],
    "gpt_pass_sequence": [1, 0],
    "gpt_difficulty": "easy",
    "gpt_pass_percentage": 0.5,
}


@pytest.fixture
def read(tmp_path):
    """Write rows to a file and import it; returns the examples and the summary."""

    def read(name, *rows, sources=None):
        if name == "faithbench":
            path = tmp_path / "batch_1.json"
            path.write_text(json.dumps({"samples": rows}))
        else:
            path = tmp_path / "rows.jsonl"
            path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
        if sources is not None:
            (tmp_path / "source_info.jsonl").write_text("".join(json.dumps(source) + "\n" for source in sources))
        summary = ImportSummary()
        return list(import_feedback_set(name, path, summary)), summary

    return read


def words(example):
    return [(example.completion[span.start : span.end], span.severity) for span in example.feedback.spans]


def test_slf5k(read):
    (made,), summary = read("slf5k", SLF5K)
    assert (made.id, made.completion) == ("slf5k-t3_1ab", "A neighbour refuses to cut his hedge.")
    assert made.prompt == SLF5K["summary_prompt"]
    assert made.reference == SLF5K["ideal_human_summary"]
    assert (made.feedback.critique, made.feedback.critic) == ("It is a tree and not a hedge.", "human")
    assert (made.meta["document"], made.meta["feedback_class"]) == (SLF5K["post"], "Accuracy")
    assert (summary.rows, summary.skipped) == (1, [])
    (built,), _ = read("slf5k", {key: value for key, value in SLF5K.items() if key != "summary_prompt"})
    assert built.prompt.startswith("Title: My neighbour's tree\n\nThe tree of my neighbour")


def test_shepherd(read):
    (made,), _ = read("shepherd", SHEPHERD)
    assert (made.id, made.prompt, made.completion) == ("shepherd-3", SHEPHERD["question"], SHEPHERD["answer"])
    assert made.feedback.critique == '"4 + 1 = 5." The eaten apple should be subtracted.'
    _, summary = read("shepherd", {"latestLabel": {}, "metadata": {}, "id": 0})
    assert "give human_data_for_model.jsonl" in summary.skipped[0]


def test_helpsteer3_feedback(read):
    (first, second), _ = read("helpsteer3", HELPSTEER_FEEDBACK)
    assert first.prompt == [Message(**turn) for turn in CONTEXT]
    assert first.feedback.critique == (
        "The response is perfectly helpful. It is right.\nThe response is mostly helpful. A bit short."
    )
    assert (first.feedback.score, second.feedback.score) == (0.75, -1.0)
    assert (first.id, second.id, second.completion) == ("rows-1-1", "rows-1-2", "In the Alps.")
    assert first.meta == {"domain": "general", "language": "english"}


def test_helpsteer3_individual_preference(read):
    (first, second), _ = read("helpsteer3", HELPSTEER_PREFERENCE)
    assert (first.feedback.critique, second.feedback.critique) == ("It is right.", "It is wrong.")
    assert (first.feedback.score, second.feedback.score) == (1.0, -1.0)
    assert first.meta["preference_reasonings"] == ["@Response 1 is right.", "Only the first is right."]


def test_helpfulness_is_the_mean_of_what_the_texts_open_with():
    assert helpfulness(["The response is slightly helpful.", "the Response 2 is NOT helpful"]) == -0.75
    assert helpfulness(["Good."]) is None


def test_ultrafeedback(read):
    (bad, good), summary = read("ultrafeedback", ULTRAFEEDBACK)
    assert bad.prompt == [
        Message(role="system", content="Say what you do not know."),
        Message(role="user", content="Name a river."),
    ]
    assert bad.feedback.critique == "The Alps are no river."
    assert bad.feedback.score == pytest.approx((1 + 2 + 1) / 3 / 2 - 1.5)  # not its overall_score of 10
    assert bad.meta["ratings"] == {"instruction_following": 1.0, "truthfulness": 2.0, "helpfulness": 1.0}
    assert (good.prompt, good.feedback.score) == ("Name a river.", 1.0)
    assert good.feedback.critique == "It names a river.\nSure."
    assert (good.meta["model"], good.feedback.critic) == ("gpt-4", "gpt-4")
    assert (summary.rows, summary.skipped) == (1, [])


def test_ragtruth_joins_its_sources(read):
    (made,), summary = read("ragtruth", RAGTRUTH, sources=[RAGTRUTH_SOURCE])
    assert made.prompt == RAGTRUTH_SOURCE["prompt"]
    assert words(made) == [("Friday", 1.0), ("Rome", 0.25)]
    assert made.feedback.spans[0].reason == "Evident Conflict: HIGH CONFLICT The source says Monday."
    assert made.meta["document"] == "The meeting is on Monday."
    assert made.meta["label_types"] == ["Evident Conflict", "Subtle Baseless Info"]
    assert (made.meta["task_type"], made.meta["split"], summary.relocated) == ("Summary", "train", 0)


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        ({"question": "when", "passages": "passage 1: Monday"}, {"document": "passage 1: Monday", "question": "when"}),
        ({"name": "Café", "stars": 3.0}, {"document": '{"name": "Café", "stars": 3.0}'}),
    ],
)
def test_ragtruth_has_three_kinds_of_sources(read, info, expected):
    (made,), _ = read("ragtruth", RAGTRUTH, sources=[RAGTRUTH_SOURCE | {"source_info": info}])
    assert made.meta.items() >= expected.items()


def test_ragtruth_needs_its_sources(read, tmp_path):
    with pytest.raises(UserError, match=r"source_info\.jsonl: no such file; .*--second"):
        read("ragtruth", RAGTRUTH)
    _, summary = read("ragtruth", RAGTRUTH, sources=[RAGTRUTH_SOURCE | {"source_id": "8"}])
    assert "source_id 7 is not in" in summary.skipped[0]
    (tmp_path / "elsewhere.jsonl").write_text(json.dumps(RAGTRUTH_SOURCE) + "\n")
    summary = ImportSummary()
    rows = import_feedback_set("ragtruth", tmp_path / "rows.jsonl", summary, tmp_path / "elsewhere.jsonl")
    assert len(list(rows)) == 1


def test_faithbench(read):
    (made,), summary = read("faithbench", FAITHBENCH)
    assert words(made) == [("production", 1.0), ("was liked", 0.5)]
    assert [(span.critic, span.reason) for span in made.feedback.spans] == [
        ("human:a1", "budget is not production budget"),
        ("human:a2", "Questionable"),
    ]
    assert made.meta == {"document": FAITHBENCH["source"], "benign": ["film"], "model": "openai/gpt-4o"}
    assert made.prompt.startswith(FAITHBENCH["source"])
    assert (made.id, summary.rows) == ("faithbench-batch_1-1", 1)


def test_faithbench_annotations_of_the_first_release(tmp_path):
    old = {key: value for key, value in FAITHBENCH.items() if key != "metadata"} | {"meta_model": "m"}
    old["annotations"] = [
        {key: value for key, value in annotation.items() if key != "annotator_id"} | {"annotator": "a"}
        for annotation in FAITHBENCH["annotations"]
    ]
    (tmp_path / "batch_1_annotation.json").write_text(json.dumps([old]))
    (made,) = import_feedback_set("faithbench", tmp_path / "batch_1_annotation.json", ImportSummary())
    assert words(made) == [("production", 1.0), ("was liked", 0.5)]
    assert (made.feedback.spans[0].critic, made.meta["model"]) == ("human:a", "m")


def test_kodcode_tests_run_beside_the_answer(read):
    (made,), _ = read("kodcode", KODCODE)
    assert made.tests == KODCODE["test"].removeprefix("from solution import double\n\n") + "\n"
    assert made.reference == KODCODE["solution"]
    assert made.prompt.startswith("Write a function that doubles a number.\n\nThe function is: def double(x):")
    assert made.meta["entry_point"] == "double"
    suite = parse_tests(made.tests)
    assert suite is not None
    assert (len(suite.cases), suite.required_names, suite.imports) == (2, {"double"}, ())
    many = KODCODE | {"test": "from solution import (\n    double,\n    half,\n)\n" + KODCODE["test"], "test_info": []}
    (made,), _ = read("kodcode", many)
    assert "solution" not in made.tests
    assert made.prompt.startswith("Write a function that doubles a number.\n\nAnswer")
    _, summary = read("kodcode", KODCODE | {"test": "import solution\nassert solution.double(1) == 2"})
    assert "use the module solution by name" in summary.skipped[0]


# Broken rows

ROWS = {
    "slf5k": SLF5K, "shepherd": SHEPHERD, "helpsteer3": HELPSTEER_FEEDBACK, "ultrafeedback": ULTRAFEEDBACK,
    "ragtruth": RAGTRUTH, "faithbench": FAITHBENCH, "kodcode": KODCODE,
}  # fmt: skip
BREAKS = [
    ("slf5k", "feedback", "", "feedback is empty"),
    ("slf5k", "generated_summary_for_feedback", 3, "generated_summary_for_feedback is not a text"),
    ("shepherd", "answer", None, "answer is empty"),
    ("helpsteer3", "context", [{"role": "user"}], "message 1 (user) has no text"),
    ("helpsteer3", "feedback2", [], "feedback2 is empty"),
    ("ultrafeedback", "completions", [{"response": "x", "annotations": {}}], "completion 1 has neither"),
    ("ultrafeedback", "completions", None, "a field does not have the form that this set has ('NoneType'"),
    ("ragtruth", "labels", None, "a field does not have the form that this set has ('NoneType'"),
    ("ragtruth", "response", " ", "response is empty"),
    ("faithbench", "annotations", [FAITHBENCH["annotations"][0] | {"label": ["Odd"]}], "has the labels Odd"),
    ("kodcode", "solution", "", "solution is empty"),
]


def test_every_set_has_a_row_here():
    assert ROWS.keys() == FEEDBACK_SETS.keys()


@pytest.mark.parametrize("name", FEEDBACK_SETS)
def test_a_row_without_a_field_names_the_fields_and_the_others_are_read(read, name):
    good = ROWS[name]
    required = {"slf5k": "feedback", "shepherd": "question", "helpsteer3": "response1", "ultrafeedback": "completions",
                "ragtruth": "labels", "faithbench": "summary", "kodcode": "test"}[name]  # fmt: skip
    lacking = {key: value for key, value in good.items() if key != required}
    examples, summary = read(name, good, lacking, good, sources=[RAGTRUTH_SOURCE])
    whole, _ = read(name, good, sources=[RAGTRUTH_SOURCE])
    assert len(examples) == 2 * len(whole) > 0
    assert summary.rows == 3
    (skipped,) = summary.skipped
    assert f"no field {required}; there are {next(iter(lacking))}" in skipped
    assert "record 2" in skipped or ":2:" in skipped


@pytest.mark.parametrize(("name", "field", "value", "says"), BREAKS)
def test_broken_rows_are_named_with_their_fault(read, name, field, value, says):
    examples, summary = read(name, ROWS[name] | {field: value}, sources=[RAGTRUTH_SOURCE])
    assert examples == []
    assert says in summary.skipped[0]


def test_a_line_that_is_no_json_is_skipped(read):
    examples, summary = read("shepherd", SHEPHERD, '{"id": ', SHEPHERD)
    assert (len(examples), len(summary.skipped)) == (2, 1)
    assert ":2: not valid JSON" in summary.skipped[0]


@pytest.mark.parametrize(
    ("start", "end", "text", "outcome"),
    [
        (9, 15, "Friday", "relocated"),
        (10, 16, "Sunday", 'a span is "Sunday", but at (10, 16) the completion has "Friday"'),
        (0, 1, "e", 'a span is "e", but at (0, 1)'),  # twice in the response
        (10, 99, "Monday", 'a span is "Monday"'),
        (None, 16, "Friday", "start of a span is None, not a whole number"),
    ],
)
def test_offsets_are_checked_against_the_words(read, start, end, text, outcome):
    row = copy.deepcopy(RAGTRUTH)
    row["labels"] = [row["labels"][0] | {"start": start, "end": end, "text": text}]
    examples, summary = read("ragtruth", row, sources=[RAGTRUTH_SOURCE])
    if outcome == "relocated":
        assert (words(examples[0]), summary.relocated) == ([("Friday", 1.0)], 1)
        assert examples[0].feedback.spans[0].match == "exact"
    else:
        assert examples == []
        assert outcome in summary.skipped[0]


def test_spans_without_their_words_must_be_inside():
    assert checked_span("abc", 0, 3, None).end == 3
    with pytest.raises(ValueError, match=r"a span is \(1, 4\), but the completion has 3 characters"):
        checked_span("abc", 1, 4, None)


def test_ratings_are_scaled():
    assert [rescale(value, 1, 5) for value in (1, 3, 5)] == [-1, 0, 1]
    with pytest.raises(ValueError, match="a rating is 6, which is not from 1 to 5"):
        rescale(6, 1, 5)


def test_names_and_second_files_are_checked(read, tmp_path):
    with pytest.raises(UserError, match='unknown feedback set "ragtrut"; did you mean "ragtruth"'):
        read("ragtrut", {})
    with pytest.raises(UserError, match="shepherd is a single file; leave out x"):
        list(import_feedback_set("shepherd", tmp_path / "a", ImportSummary(), "x"))
