"""Exports: what is written, and that our own importer reads it back, offset by offset."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from studio_support import COMPLETIONS

from text2grad.critics.human.critic import read_feedback
from text2grad.schema import Feedback, Omission, Span
from text2grad.studio import exports
from text2grad.studio.exports import ADJUDICATOR
from text2grad.studio.project import Project

# words of each answer: after emoji, combining marks, tabs and line breaks
WORDS = {
    "plain": "Friday",
    "emoji": "late \U0001f600",
    "combining": "Zo\u0308e\u0308",
    "code": "return x\n\n\treturn",
    "hebrew": "\u05ea\u05e9\u05e2 (9:00)",
    "breaks": "Second\tline.\n\n  Third",
}


@pytest.fixture
def project(answers: Path) -> Iterator[Project]:
    project = Project(answers)
    yield project
    project.close()


def annotate(project: Project, index: int, *spans: Span, annotator: str = "Mia", **more: object) -> None:
    feedback = Feedback(critic=f"human:{annotator}", spans=list(spans), **more)
    project.store.save(project.keys[index], project.examples[index], annotator, 0, "done", feedback)


def find(text: str, words: str, **more: object) -> Span:
    start = text.index(words)
    return Span.model_validate({"start": start, "end": start + len(words), "label": "poor", **more})


@pytest.mark.parametrize("form", ["label-studio", "argilla", "feedback"])
def test_spans_come_back_exactly(project: Project, tmp_path: Path, form: exports.Format) -> None:
    for index, (name, words) in enumerate(WORDS.items()):
        annotate(project, index, find(COMPLETIONS[name], words, replacement="new"))
    path = tmp_path / f"out.{exports.SUFFIXES[form]}"
    assert exports.write(project, path, form) == len(WORDS)
    back = list(read_feedback(path))
    assert [e.completion for e in back] == list(COMPLETIONS.values())
    for example, words in zip(back, WORDS.values(), strict=True):
        assert example.feedback is not None
        (span,) = example.feedback.spans
        assert example.completion[span.start : span.end] == words
        assert (span.label, span.replacement, span.critic) == ("poor", "new", "human:Mia")


def test_reasons_and_omissions_go_to_label_studio(project: Project, tmp_path: Path) -> None:
    text = COMPLETIONS["plain"]
    missing = Omission(text="the repairs", insertion=" Repairs take six weeks.", insert_at=len(text))
    annotate(project, 0, find(text, "Friday", reason="It was Monday."), find(text, "430"), omissions=[missing])
    path = tmp_path / "out.json"
    exports.write(project, path, "label-studio")
    (example,) = read_feedback(path)
    assert example.feedback is not None
    assert [s.reason for s in example.feedback.spans] == ["It was Monday.", "poor"]  # without a reason: the label
    (back,) = example.feedback.omissions
    assert (back.text, back.insertion, back.insert_at) == (missing.text, missing.insertion, missing.insert_at)


@pytest.mark.parametrize("form", ["label-studio", "argilla"])
def test_what_is_said_of_each_part_comes_back(project: Project, tmp_path: Path, form: exports.Format) -> None:
    text = COMPLETIONS["plain"]
    spans = [
        find(text, "Friday", reason="It was Monday.", replacement="Monday", severity=0.5),
        find(text, "430", reason="Too many.", replacement=""),
        find(text, "historic"),
    ]
    annotate(project, 0, *spans, critique="Wrong day.", omissions=[Omission(text="the repairs\nand their cost")])
    path = tmp_path / "out.json"
    exports.write(project, path, form)
    (example,) = read_feedback(path)
    assert example.feedback is not None
    said = [(s.start, s.end, s.reason, s.replacement) for s in example.feedback.spans]
    assert said == [(s.start, s.end, s.reason or "poor", s.replacement) for s in spans]
    assert [omission.text for omission in example.feedback.omissions] == ["the repairs\nand their cost"]
    severities = [s.severity for s in example.feedback.spans]
    assert severities == ([0.5, 1.0, 1.0] if form == "label-studio" else [1.0, 1.0, 1.0])


@pytest.mark.parametrize("form", ["label-studio", "argilla"])
def test_a_critique_of_the_whole_is_a_comment(project: Project, tmp_path: Path, form: exports.Format) -> None:
    annotate(project, 0, critique="Too long.")
    path = tmp_path / "out.json"
    exports.write(project, path, form)
    (example,) = read_feedback(path)
    assert example.feedback is not None
    assert (example.feedback.critique, example.feedback.critic) == ("Too long.", "human:Mia")


def test_opinions_are_merged_until_one_is_final(project: Project) -> None:
    text = COMPLETIONS["plain"]
    annotate(project, 0, find(text, "Friday"))
    annotate(project, 0, find(text, "430"), annotator="Tom")
    (example,) = exports.feedback_examples(project)
    assert example.feedback is not None
    assert [(text[s.start : s.end], s.critic) for s in example.feedback.spans] == [
        ("Friday", "human:Mia"),
        ("430", "human:Tom"),
    ]
    (only,) = exports.feedback_examples(project, "Tom")
    assert only.feedback is not None
    assert [text[s.start : s.end] for s in only.feedback.spans] == ["430"]
    annotate(project, 0, find(text, "historic"), annotator=ADJUDICATOR)
    (final,) = exports.feedback_examples(project)
    assert final.feedback is not None
    assert [text[s.start : s.end] for s in final.feedback.spans] == ["historic"]


def test_skipped_and_untouched_answers_are_left_out(project: Project) -> None:
    feedback = Feedback(critic="human:Mia", critique="Hm.")
    project.store.save(project.keys[0], project.examples[0], "Mia", 0, "skipped", feedback)
    project.store.save(project.keys[1], project.examples[1], "Mia", 0, "open", Feedback(critic="human:Mia"))
    assert exports.feedback_examples(project) == []
    assert json.loads(exports.render(project, "argilla")) == []


def test_answers_that_left_the_file_are_still_exported(project: Project, answers: Path) -> None:
    annotate(project, 0, find(COMPLETIONS["plain"], "Friday"))
    project.close()
    lines = answers.read_text().splitlines(keepends=True)
    answers.write_text("".join(lines[1:]))
    again = Project(answers)
    assert [example.id for example in exports.feedback_examples(again)] == ["plain"]
    again.close()
