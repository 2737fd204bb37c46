import gzip
import json

import pytest

from text2grad.data.defacto import read, read_corrected
from text2grad.errors import UserError


def row(candidate, corrected, has_error=True):
    return {
        "article": "An article.",
        "abstract": "A reference.",
        "candidate": candidate,
        "doc_id": 7,
        "has_error": has_error,
        "feedback": {"summary": corrected, "evidence": "E.", "explanation": "It is wrong.", "instruction": "Fix it."},
    }


def first(tmp_path, data):
    path = tmp_path / "train.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as out:
        out.write(json.dumps(data) + "\n")
    return next(read(path))


def marked(example):
    return [(example.completion[span.start : span.end], span.replacement) for span in example.feedback.spans]


def test_changed_words_are_blamed_and_replaced_by_the_persons(tmp_path):
    data = row("A former soldier lost both legs in Iraq.", "A soldier lost both his legs near Camp Bastion.")
    assert marked(first(tmp_path, data)) == [("former", ""), ("in Iraq.", "near Camp Bastion.")]


def test_another_sentence_is_no_replacement(tmp_path):
    words = " ".join(f"word{i}" for i in range(13))
    assert marked(first(tmp_path, row("A boy died.", f"A {words} died."))) == [("boy", None)]


def test_case_is_no_change(tmp_path):
    assert marked(first(tmp_path, row("the EU Said so", "The eu said so"))) == []


def test_a_row_becomes_an_example(tmp_path):
    example = first(tmp_path, row("A  sad boy died.", "A boy died."))
    assert (example.id, example.prompt, example.reference) == ("defacto-7", "An article.", "A reference.")
    assert example.feedback.critique == "It is wrong. Fix it."
    assert [example.completion[span.start : span.end] for span in example.feedback.spans] == ["sad"]
    assert example.feedback.spans[0].label == "poor"
    assert example.meta["corrected"] == "A boy died."


def test_a_correction_that_only_inserts_is_an_omission(tmp_path):
    feedback = first(tmp_path, row("A boy died.", "A boy died. He was six.")).feedback
    assert feedback.spans == []
    (omission,) = feedback.omissions
    assert (omission.text, omission.insert_at, omission.insertion) == ("He was six.", 11, " He was six.")


def test_a_summary_without_error_has_no_spans(tmp_path):
    assert first(tmp_path, row("A boy died.", "", has_error=False)).feedback.spans == []


def test_corrections_are_answers_that_nobody_blames(tmp_path):
    rows = [row("A sad boy died.", "A boy died."), row("A boy died.", "", has_error=False), row("A dog died.", "")]
    path = tmp_path / "train.jsonl"
    path.write_text("".join(json.dumps(data) + "\n" for data in rows), encoding="utf-8")
    (example,) = read_corrected(path)
    assert (example.id, example.prompt, example.completion) == ("defacto-7-corrected", "An article.", "A boy died.")
    assert example.reference == "A reference."
    assert (example.feedback.status, example.feedback.spans, example.feedback.critique) == ("ok", [], "")
    # The same prompt as the summary that it corrects, so that a split by prompt keeps them together.
    assert example.prompt == next(read(path)).prompt


@pytest.mark.parametrize("reader", [read, read_corrected])
def test_a_missing_file_is_named(tmp_path, reader):
    with pytest.raises(UserError, match="no such file"):
        next(reader(tmp_path / "absent.jsonl"))
