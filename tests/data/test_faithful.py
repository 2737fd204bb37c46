"""Faithful texts: the completion is the right answer, the source is in meta."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from text2grad.data import faithful
from text2grad.schema import Example


def test_summaries_with_and_without_instruction() -> None:
    first, plain, lead = list(faithful.from_summaries("train"))[:3]
    assert first.prompt_text.endswith("Summarise the text above in one short sentence.")
    assert plain.prompt_text == plain.meta["document"] == lead.prompt_text
    assert first.completion == plain.completion
    assert lead.meta["document"].startswith(lead.completion)
    assert lead.completion.endswith(".")


def test_xquad_answers_in_words_in_sentences_and_without_the_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = "Bern lies on the Aare. Zurich is larger. It has 400,000 people."
    questions = [("Where is Bern?", "Aare"), ("Which is larger?", "Zurich")]
    items = [{"id": q, "question": q, "answers": [{"text": a}]} for q, a in questions]
    article = {"title": "t", "paragraphs": [{"context": document, "qas": items}]}
    (tmp_path / "xquad_en").mkdir()
    with gzip.open(tmp_path / "xquad_en" / "xquad.en.json.gz", "wt") as file:
        json.dump({"data": [article]}, file)
    monkeypatch.setenv("TEXT2GRAD_DATA", str(tmp_path))
    texts = [*faithful.from_xquad("train"), *faithful.from_xquad("heldout")]
    assert [text.completion for text in texts if text.prompt_text == document] == [
        "Bern lies on the Aare.",
        "Zurich is larger.",
        "It has 400,000 people.",
    ]
    short, sentence, alone = texts[3:6]
    assert (short.completion, short.meta["other_answers"]) == ("Aare", ["Zurich"])
    assert (sentence.completion, sentence.meta["document"]) == ("Bern lies on the Aare.", document)
    assert (alone.prompt, alone.meta["document"], alone.meta["passage"]) == ("Where is Bern?", "", document)
    assert len({text.id for text in texts}) == len(texts)


def test_defacto_and_fgrlhf(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    feedback = {"explanation": "e", "instruction": "i", "evidence": "v", "summary": "Corrected."}
    rows = [
        {"doc_id": str(i), "article": "A.", "candidate": "Written.", "abstract": "R.", "has_error": bool(i)}
        | {"feedback": feedback}
        for i in range(2)
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    texts = list(faithful.from_defacto(path))
    assert [(text.completion, text.feedback, text.meta["document"]) for text in texts] == [
        ("Written.", None, "A."),
        ("Corrected.", None, "A."),
    ]
    answer = Example(
        id="1",
        prompt="D Q",
        completion="w",
        reference="Gold.",
        meta={"document": "D", "question": "Q", "corrected": ""},
    )
    assert [(text.prompt, text.completion) for text in faithful.from_fgrlhf([answer])] == [
        ("D Q", "Gold."),
        ("Q", "Gold."),
    ]
