"""Human comments in every supported format become spans at the right characters, or an error with a position."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from text2grad.critics.fingerprint import critic_digest
from text2grad.critics.human.critic import HumanCritic, read_feedback
from text2grad.errors import UserError
from text2grad.schema import Example, Feedback

PROMPT = "When is the meeting?"
ANSWER = "The meeting is on Friday 😀 in Rome. See you on Friday."


def table(path: Path, *rows: dict[str, Any], delimiter: str = ",") -> Path:
    columns = list(dict.fromkeys(column for row in rows for column in row))
    with path.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, columns, delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return path


def dumped(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def comment(text: str, **fields: Any) -> dict[str, Any]:
    return {"prompt": PROMPT, "completion": ANSWER, "comment": text, **fields}


def only(path: Path, **options: Any) -> tuple[Example, Feedback]:
    (example,) = read_feedback(path, **options)
    assert example.feedback is not None
    return example, example.feedback


def marked(example: Example) -> list[tuple[str, str, str, str]]:
    """Characters, label, critic and match of every span."""
    assert example.feedback is not None
    return [
        (example.completion[span.start : span.end], span.label, span.critic, span.match)
        for span in example.feedback.spans
    ]


# CSV


def test_rows_about_the_same_answer_merge(tmp_path: Path) -> None:
    path = table(
        tmp_path / "feedback.csv",
        comment("Wrong day.", id="m1", annotator="ann", start=18, end=24, label="poor", severity=0.5),
        {"prompt": "Other?", "completion": "Yes.", "comment": 'The "Yes" is fine.', "id": "m2"},
        comment("The place is right.", annotator="bob", quote="in rome", label="good"),
        comment('The second "Friday" is redundant.'),
    )

    first, second = read_feedback(path)

    assert (first.id, second.id) == ("m1", "m2")
    assert marked(first) == [
        ("Friday", "poor", "human:ann", "offset"),
        ("in Rome", "good", "human:bob", "normalized"),
        ("Friday", "poor", "human", "exact"),
    ]
    assert first.feedback is not None
    assert [span.start for span in first.feedback.spans] == [18, 27, 47]
    assert [span.severity for span in first.feedback.spans] == [0.5, 1.0, 1.0]
    assert first.feedback.critique == 'Wrong day.\nThe place is right.\nThe second "Friday" is redundant.'
    assert [first.feedback.critique[slice(*span.phrase)] for span in first.feedback.spans if span.phrase] == [
        "Wrong day.",
        "The place is right.",
        "Friday",
    ]
    assert marked(second) == [("Yes", "good", "human", "exact")]


@pytest.mark.parametrize(("name", "delimiter"), [("a.tsv", "\t"), ("a.csv", ";"), ("a.csv", ",")])
def test_the_separators_of_spreadsheets(tmp_path: Path, name: str, delimiter: str) -> None:
    path = table(
        tmp_path / name, comment('"Friday 😀" is wrong, yes; "Friday 😀" is wrong.', topic="dates"), delimiter=delimiter
    )

    example, _ = only(path)

    assert marked(example) == [("Friday 😀", "poor", "human", "exact")]
    assert example.meta == {"topic": "dates"}
    assert example.id == "a-2"


def test_without_a_label_the_comment_decides(tmp_path: Path) -> None:
    praise = {"start": 27, "end": 34}
    path = table(
        tmp_path / "a.csv", comment("This is correct, well done.", **praise), comment("Wrong day.", start=18, end=24)
    )

    example, _ = only(path)

    assert [(text, label) for text, label, _, _ in marked(example)] == [("in Rome", "good"), ("Friday", "poor")]


def test_a_label_alone_is_a_verdict_on_the_whole(tmp_path: Path) -> None:
    rows = [comment("", label="👍"), comment("", label="bad", severity=0.5), comment("Wrong day.", start=18, end=24)]

    _, alone = only(table(tmp_path / "a.csv", rows[0]))
    example, merged = only(table(tmp_path / "b.csv", *rows))

    assert (alone.score, alone.spans) == (1.0, [])
    assert merged.score == 0.25  # the mean of 1 and -0.5
    assert [text for text, *_ in marked(example)] == ["Friday"]


def test_what_is_missing_is_an_omission(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", comment("It does not say at what time.", label="Missing", severity=0.4))

    _, feedback = only(path)

    (omission,) = feedback.omissions
    assert (omission.text, omission.severity, omission.phrase) == ("It does not say at what time.", 0.4, (0, 29))
    assert feedback.spans == []


def test_a_comment_that_is_found_nowhere_has_no_spans_and_its_quotes_are_unmatched(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", comment('"budget committee" is wrong.'), comment("Bad.", quote="Lisbon"))

    _, feedback = only(path)

    assert (feedback.status, feedback.spans) == ("failed", [])
    assert 'the quotation is not found: "Lisbon" is not in the completion' in feedback.error
    assert feedback.unmatched == ["budget committee", "Lisbon"]


def test_columns_and_labels_with_names_of_their_own(tmp_path: Path) -> None:
    row = {"Question": PROMPT, "Reply": ANSWER, "Note": "Tone.", "label": "Fluff", "start": 36, "end": 54}
    path = table(tmp_path / "a.csv", row)

    example, _ = only(
        path, columns={"prompt": "Question", "completion": "Reply", "comment": "Note"}, labels={"fluff": "poor"}
    )

    assert marked(example) == [("See you on Friday.", "poor", "human", "offset")]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"start": "x", "end": 3}, r"a\.csv:2: start: Input should be a valid integer"),
        ({"start": -1, "end": 3}, r"a\.csv:2: start: Input should be greater than or equal to 0"),
        ({"start": 3}, r"a\.csv:2: end is missing; give both or neither"),
        ({"start": 3, "end": 3}, r"a\.csv:2: start is 3 and end 3"),
        ({"start": 3, "end": 999}, r"a\.csv:2: start is 3 and end 999, but the completion has 54 characters"),
        (
            {"start": 0, "end": 3, "quote": "Friday"},
            r'a\.csv:2: start and end point at "The", but the quote is "Friday"',
        ),
        (
            {"label": "Fluff"},
            r'a\.csv:2: the meaning of label "Fluff" is unknown; give it, as in --label Fluff=poor or in',
        ),
        ({"severity": "high"}, r"a\.csv:2: severity: Input should be a valid number"),
        ({"severity": 2}, r"a\.csv:2: severity: Input should be less than or equal to 1"),
        ({"comment": ""}, r"a\.csv:2: comment is empty, and so are label and replacement"),
        ({"completion": ""}, r"a\.csv:2: completion is missing or empty"),
        ({"prompt": ""}, r"a\.csv:2: prompt: Field required"),
    ],
)
def test_errors_name_file_line_and_field(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    path = table(tmp_path / "a.csv", comment("Bad.") | fields)

    with pytest.raises(UserError, match=message):
        list(read_feedback(path))


def test_files_that_are_none_of_these_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"absent\.csv: no such file"):
        list(read_feedback(tmp_path / "absent.csv"))
    with pytest.raises(UserError, match=r"b\.csv:2: no column comment; there are prompt, answer: name it"):
        list(read_feedback(table(tmp_path / "b.csv", {"prompt": "a", "answer": "b"})))
    ragged = tmp_path / "c.csv"
    ragged.write_text("prompt,completion,comment\na,b,c,d\n")
    with pytest.raises(UserError, match=r"c\.csv:2: the row has 4 cells and the header 3"):
        list(read_feedback(ragged))
    ragged.write_bytes(b"prompt,completion,comment\na,b,\xff\n")
    with pytest.raises(UserError, match=r"c\.csv: not UTF-8"):
        list(read_feedback(ragged))
    broken = tmp_path / "d.jsonl"
    broken.write_text(json.dumps(comment("Bad.")) + '\n{"prompt": \n')
    with pytest.raises(UserError, match=r"d\.jsonl:2: not valid JSON"):
        list(read_feedback(broken))
    broken.write_text("[1]\n")
    with pytest.raises(UserError, match=r"d\.jsonl:1: not a JSON object"):
        list(read_feedback(broken))
    with pytest.raises(UserError, match='"Fluff" is given the meaning "awful"; it must be good, poor or missing'):
        list(read_feedback(broken, labels={"Fluff": "awful"}))


# JSON lines


def test_records_of_the_schema_and_records_with_a_comment(tmp_path: Path) -> None:
    ready = {"prompt": PROMPT, "completion": ANSWER, "feedback": {"critique": "Fine.", "critic": "ann"}}
    path = tmp_path / "a.jsonl"
    lines = [ready, comment("Wrong day.", start=18, end=24, reference="Monday"), comment("x", completion="Other.")]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")

    first, second = read_feedback(path)

    assert first.feedback is not None
    assert (first.feedback.critic, first.feedback.critique) == ("ann+human", "Fine.\nWrong day.")
    assert [text for text, *_ in marked(first)] == ["Friday"]
    assert (second.id, second.completion) == ("a-3", "Other.")
    path.write_text(json.dumps(ready | {"feedback": {"critik": "Fine.", "critic": "ann"}}))
    with pytest.raises(UserError, match=r"a\.jsonl:1: feedback\.critik"):
        list(read_feedback(path))


# What should stand there instead


def replaced(example: Example) -> list[tuple[str, str | None]]:
    assert example.feedback is not None
    return [(example.completion[span.start : span.end], span.replacement) for span in example.feedback.spans]


def test_a_column_of_replacements(tmp_path: Path) -> None:
    path = table(
        tmp_path / "a.csv",
        comment("Wrong day.", start=18, end=24, replacement="Monday"),
        comment("Not there.", quote="in Rome", replacement="[delete]"),
        comment('Why "See you"?', replacement=""),
        comment("", quote="meeting", replacement="party"),
        comment("Who comes?", label="missing", start=11, replacement=" with Ann"),
    )
    example, feedback = only(path)
    assert replaced(example) == [("Friday", "Monday"), ("in Rome", ""), ("See you", None), ("meeting", "party")]
    assert {span.label for span in feedback.spans} == {"poor"}
    assert [(o.text, o.insert_at, o.insertion) for o in feedback.omissions] == [("Who comes?", 11, " with Ann")]


def test_a_field_of_replacements(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows = [
        comment('"in Rome" is great.', replacement=""),
        comment('Neither "meeting" nor "Friday" is right.', replacement="x"),
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    example, _ = only(path)
    assert replaced(example) == [("in Rome", ""), ("meeting", None), ("Friday", None)], "of two words, neither is named"
    path.write_text(json.dumps(comment("Good.", quote="Rome", label="good", replacement="Oslo")))
    with pytest.raises(UserError, match=r'a\.jsonl:1: .*label is "good": only blamed words are replaced'):
        list(read_feedback(path))
    path.write_text(json.dumps(comment("Who?", label="missing", start=99, replacement="Ann")))
    with pytest.raises(UserError, match="start is 99, but the completion has 54 characters"):
        list(read_feedback(path))


def test_replacements_of_label_studio_and_argilla(tmp_path: Path) -> None:
    def instead(name: str, text: Any) -> dict[str, Any]:
        return written(name, text) | {"from_name": "replacement"}

    export = task(
        region("r1", 18, 24, "Wrong", "Friday"),
        written("r1", ["Wrong day."]),
        instead("r1", ["Monday"]),
        region("r2", 27, 34, "Wrong", "in Rome"),
        instead("r2", "[delete]"),
        region("r3", 4, 11, "Wrong", "meeting"),
    )
    example, feedback = only(dumped(tmp_path / "export.json", [export]))
    assert replaced(example) == [("Friday", "Monday"), ("in Rome", ""), ("meeting", None)]
    assert feedback.critique == "Wrong day."
    record = {
        "fields": {"prompt": PROMPT, "response": ANSWER},
        "responses": {
            "spans": [
                {"value": [{"start": 18, "end": 24, "label": "error"}], "user_id": "u1"},
                {"value": [{"start": s, "end": s + 3, "label": "error"} for s in (0, 4)], "user_id": "u2"},
            ],
            "replacement": [{"value": "Monday", "user_id": "u1"}, {"value": "A", "user_id": "u2"}],
        },
    }
    example, _ = only(dumped(tmp_path / "records.json", [record]))
    assert replaced(example) == [("Friday", "Monday"), ("The", None), ("mee", None)]


# Label Studio


def region(name: str, start: int, end: int, label: str, text: str | None, **fields: Any) -> dict[str, Any]:
    value = {"start": start, "end": end, "labels": [label]} | ({"text": text} if text else {})
    return {"id": name, "from_name": "label", "to_name": "text", "type": "labels", "value": value} | fields


def written(name: str, text: Any, **value: int) -> dict[str, Any]:
    value = {"text": text, **value}
    return {"id": name, "from_name": "why", "to_name": "text", "type": "textarea", "value": value}


def task(*results: dict[str, Any], **annotation: Any) -> dict[str, Any]:
    annotations = [{"id": 7, "completed_by": 3, "result": list(results)} | annotation]
    return {"id": 41, "data": {"prompt": PROMPT, "answer": ANSWER}, "annotations": annotations, "predictions": []}


def test_label_studio_regions_come_with_what_was_written_about_them(tmp_path: Path) -> None:
    export = task(
        region("r1", 18, 24, "Wrong", "Friday"),
        written("r1", ["It is on Monday."], start=18, end=24),
        written("c1", ['"in Rome" is right.']),
        {"id": "ch", "from_name": "overall", "to_name": "text", "type": "choices", "value": {"choices": ["Good"]}},
        {"id": "ch2", "from_name": "tone", "to_name": "text", "type": "choices", "value": {"choices": ["curt"]}},
        {"from_id": "r1", "to_id": "c1", "type": "relation"},
    )

    example, feedback = only(dumped(tmp_path / "export.json", [export]))

    assert example.id == "41"
    assert marked(example) == [("Friday", "poor", "human:3", "offset"), ("in Rome", "good", "human:3", "exact")]
    assert feedback.critique == 'It is on Monday.\n"in Rome" is right.'
    assert [span.reason for span in feedback.spans] == ["It is on Monday.", '"in Rome" is right.']
    assert feedback.score == 1.0
    assert example.meta == {"tone": ["curt"]}


@pytest.mark.parametrize("offset", [27, 28])  # in characters, and as a browser counts the emoji before it
def test_label_studio_offsets_before_and_after_it_counted_characters(tmp_path: Path, offset: int) -> None:
    export = task(region("r1", offset, offset + 7, "good", "in Rome"))

    example, _ = only(dumped(tmp_path / "export.json", [export]))

    assert marked(example) == [("in Rome", "good", "human:3", "offset")]


def test_label_studio_annotators_merge_and_cancelled_ones_do_not_count(tmp_path: Path) -> None:
    export = task(region("r1", 18, 24, "poor", "Friday"), completed_by={"id": 1, "email": "a@b.c"})
    export["annotations"] += [
        {"completed_by": 2, "result": [region("x", 18, 24, "poor", "Friday")]},
        {"completed_by": 4, "result": [region("x", 0, 3, "poor", "The")], "was_cancelled": True},
    ]

    example, _ = only(dumped(tmp_path / "export.json", [export]))

    assert marked(example) == [("Friday", "poor", "human:a@b.c+human:2", "offset")]


def test_label_studio_marks_on_the_prompt_are_left_out_and_other_regions_refused(tmp_path: Path) -> None:
    _, feedback = only(
        dumped(
            tmp_path / "a.json",
            [task(region("p", 0, 4, "poor", "When", to_name="prompt"), region("r", 18, 24, "poor", "Friday"))],
        )
    )
    assert [(span.start, span.end) for span in feedback.spans] == [(18, 24)]
    choice = {"id": "c", "from_name": "verdict", "to_name": "prompt", "type": "choices", "value": {"choices": ["poor"]}}
    _, feedback = only(dumped(tmp_path / "d.json", [task(choice, region("r", 18, 24, "good", "Friday"))]))
    assert feedback.score is None or feedback.score >= 0
    hypertext = task(region("r", 0, 3, "poor", None, type="hypertextlabels"))
    with pytest.raises(UserError, match=r'b\.json: record 1: result type "hypertextlabels" has no offsets'):
        list(read_feedback(dumped(tmp_path / "b.json", [hypertext])))
    moved = task(region("r", 0, 3, "poor", "Monday"))
    with pytest.raises(UserError, match=r'c\.json: record 1: start and end point at "The", but the quote is "Monday"'):
        list(read_feedback(dumped(tmp_path / "c.json", [moved])))


def test_a_record_without_the_usual_fields_lists_its_fields(tmp_path: Path) -> None:
    path = dumped(tmp_path / "a.json", [{"data": {"frage": PROMPT, "antwort": ANSWER}, "annotations": []}])

    with pytest.raises(UserError, match=r"a\.json: record 1: no field prompt or .*there are frage, antwort"):
        list(read_feedback(path))
    (example,) = read_feedback(path, columns={"prompt": "frage", "completion": "antwort"})
    assert (example.completion, example.feedback) == (ANSWER, None)


# Argilla

SPANS = [
    {"start": 28, "end": 35, "label": "good"},
    {"start": 18, "end": 24, "label": "error"},
]  # UTF-16, as its page counts
FIELDS = {"prompt": PROMPT, "response": ANSWER}


@pytest.mark.parametrize(
    "record",
    [
        {
            "id": "r1",
            "fields": FIELDS,
            "suggestions": {"spans": {"value": [{"start": 0, "end": 3, "label": "poor"}]}},
            "responses": {
                "spans": [{"value": SPANS, "user_id": "u1"}],
                "comment": [{"value": 'Not on "Friday 😀".', "user_id": "u1"}],
                "overall": [{"value": "bad", "user_id": "u1"}],
                "stars": [{"value": 2, "user_id": "u1"}],
                "topics": [{"value": ["date", "place"], "user_id": "u1"}],
            },
        },
        {
            "id": "r1",
            "fields": FIELDS,
            "responses": [
                {
                    "user_id": "u1",
                    "status": "submitted",
                    "values": {
                        "spans": {"value": SPANS},
                        "comment": {"value": 'Not on "Friday 😀".'},
                        "overall": {"value": "bad"},
                        "stars": {"value": 2},
                        "topics": {"value": ["date", "place"]},
                    },
                },
                {"user_id": "u2", "status": "discarded", "values": {"comment": {"value": "Never mind."}}},
            ],
        },
        {
            "id": "r1",
            **FIELDS,
            "spans.responses": [SPANS],
            "spans.responses.users": ["u1"],
            "spans.responses.status": ["submitted"],
            "comment.responses": ['Not on "Friday 😀".', "Never mind."],
            "comment.responses.users": ["u1", "u2"],
            "comment.responses.status": ["submitted", "discarded"],
            "overall.responses": ["bad"],
            "stars.responses": [2],
            "topics.responses": [["date", "place"]],
        },
    ],
    ids=["2.x", "1.x", "hub"],
)
def test_argilla_records_in_their_three_shapes(tmp_path: Path, record: dict[str, Any]) -> None:
    example, feedback = only(dumped(tmp_path / "records.json", [record]))

    assert (example.id, example.prompt) == ("r1", PROMPT)
    assert marked(example) == [
        ("in Rome", "good", "human:u1", "offset"),
        ("Friday", "poor", "human:u1", "offset"),
        ("Friday 😀", "poor", "human:u1", "exact"),
    ]
    assert feedback.critique == 'Not on "Friday 😀".'
    assert feedback.score == -1.0
    assert example.meta == {"stars": [2], "topics": ["date", "place"]}


def test_argilla_offsets_that_a_program_wrote_count_characters(tmp_path: Path) -> None:
    record = {"fields": FIELDS, "responses": {"spans": [{"value": [{"start": 27, "end": 34, "label": "good"}]}]}}

    example, _ = only(dumped(tmp_path / "records.json", {"records": [record]}))

    assert marked(example) == [("in Rome", "good", "human", "offset")]


def test_of_several_text_questions_the_comment_can_be_named(tmp_path: Path) -> None:
    responses = {"rewrite": [{"value": "On Monday in Rome."}], "why": [{"value": 'It is not on "Friday".'}]}
    path = dumped(tmp_path / "records.json", [{"fields": FIELDS, "responses": responses}])

    example, feedback = only(path, columns={"comment": "why"})

    assert feedback.critique == 'It is not on "Friday".'
    assert example.meta == {"rewrite": ["On Monday in Rome."]}


# The critic


def test_the_critic_returns_the_comments_on_a_completion(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", comment("Wrong day.", start=18, end=24))
    known = Example(id="1", prompt=[{"role": "user", "content": PROMPT}], completion=ANSWER)  # type: ignore[list-item]
    unknown = Example(id="2", prompt=PROMPT, completion="On Monday.")

    first, second = HumanCritic(path).critique([known, unknown])

    assert [(span.start, span.end) for span in first.spans] == [(18, 24)]
    assert second.status == "failed"
    assert "a.csv has no comment on this completion" in str(second.error)


def test_a_comment_without_a_position_is_read(tmp_path: Path) -> None:
    answer = Example(id="1", prompt=PROMPT, completion=ANSWER)

    (found,) = HumanCritic(table(tmp_path / "a.csv", comment("Rome is wrong."))).critique([answer])
    (lost,) = HumanCritic(table(tmp_path / "b.csv", comment("The umbrella in Karachi is wrong."))).critique([answer])

    assert [(ANSWER[span.start : span.end], span.critic) for span in found.spans] == [("Rome", "human")]
    assert (lost.status, lost.critique) == ("failed", "The umbrella in Karachi is wrong.")


def test_the_row_says_stance_and_severity_of_a_comment_that_is_read(tmp_path: Path) -> None:
    (unlabelled,) = read_feedback(table(tmp_path / "a.csv", comment("Rome is wrong.")))
    (labelled,) = read_feedback(table(tmp_path / "b.csv", comment("Rome is wrong.", label="good", severity=0.5)))

    assert [(text, label) for text, label, *_ in marked(unlabelled)] == [("Rome", "poor")]
    ((text, label, *_),) = marked(labelled)
    assert "Rome" in text
    assert label == "good"
    assert labelled.feedback is not None
    assert labelled.feedback.spans[0].severity == 0.5


def test_what_a_comment_says_is_missing_is_an_omission_with_the_severity_of_the_row(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", comment("It forgot to mention the price.", severity=0.5))

    _, feedback = only(path)

    assert [(omission.text, omission.severity) for omission in feedback.omissions] == [("the price", 0.5)]
    assert (feedback.status, feedback.spans) == ("ok", [])
    (returned,) = HumanCritic(path).critique([Example(id="1", prompt=PROMPT, completion=ANSWER)])
    assert returned == feedback


def test_comments_without_effect_keep_their_text(tmp_path: Path) -> None:
    vague, vaguer = comment("Hm, well.", annotator="ann"), comment("The soup in Zanzibar is bad.", annotator="bob")
    clear = comment("Wrong day.", start=18, end=24)

    (lost,) = read_feedback(table(tmp_path / "a.csv", vague, vaguer))
    (found,) = read_feedback(table(tmp_path / "b.csv", vague, clear))

    assert lost.feedback is not None
    assert found.feedback is not None
    assert (lost.feedback.status, lost.feedback.critique) == ("failed", "Hm, well.\nThe soup in Zanzibar is bad.")
    for reason in ("it says nothing about the answer", '"The soup in Zanzibar is bad.": it fits no part of the answer'):
        assert reason in str(lost.feedback.error)
    assert found.feedback.status == "ok"
    assert "it says nothing about the answer" in str(found.feedback.error)  # why one of the two has no effect
    assert found.feedback.critique == "Hm, well.\nWrong day."
    assert [text for text, *_ in marked(found)] == ["Friday"]


def test_a_verdict_survives_a_comment_without_effect(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", comment("Hm, well."), comment("", label="bad"))

    (feedback,) = HumanCritic(path).critique([Example(id="1", prompt=PROMPT, completion=ANSWER)])

    assert (feedback.status, feedback.score, feedback.critique) == ("ok", -1.0, "Hm, well.")


def test_the_critic_reads_the_critique_of_a_record_of_the_schema(tmp_path: Path) -> None:
    answer = Example(id="1", prompt=PROMPT, completion=ANSWER)
    said = answer.model_copy(update={"feedback": Feedback(critic="me", critique="Rome is wrong.")})
    (tmp_path / "a.jsonl").write_text(said.model_dump_json(exclude_defaults=True), encoding="utf-8")

    (feedback,) = HumanCritic(tmp_path / "a.jsonl").critique([answer])

    assert [ANSWER[span.start : span.end] for span in feedback.spans] == ["Rome"]


def test_changed_comments_are_a_changed_critic(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", comment("Wrong day."))
    before, same = critic_digest(HumanCritic(path)), critic_digest(HumanCritic(path))
    table(path, comment("Wrong place."))

    assert before == same != critic_digest(HumanCritic(path))
