"""Data sets by name, and their splits."""

from __future__ import annotations

import gzip
import importlib
import json

import pytest
from datasets import Dataset

from text2grad.data.reading import read_rows
from text2grad.data.registry import DATASETS, load_examples
from text2grad.data.split import split_by_prompt
from text2grad.errors import UserError
from text2grad.schema import Example


def write_gzip(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write(text)


def problem(number):
    return json.dumps(
        {
            "task_id": number,
            "text": "Add one.",
            "code": "def f(x):\r\n    return x + 1",
            "test_list": ["assert f(1) == 2", "assert f(2) == 3"],
            "test_setup_code": "import math",
        }
    )


def test_mbpp_is_split_by_id(tmp_path, monkeypatch):
    monkeypatch.setenv("TEXT2GRAD_DATA", str(tmp_path))
    write_gzip(tmp_path / "mbpp" / "mbpp.jsonl.gz", "\n".join(map(problem, (5, 11, 510, 511, 600, 601, 974))))
    assert [e.id for e in load_examples("mbpp", "train")] == ["mbpp-601", "mbpp-974"]
    first, *_ = load_examples("mbpp", "heldout")
    assert first.id == "mbpp-511"
    assert first.tests == "import math\nassert f(1) == 2\nassert f(2) == 3"
    assert "assert f(1) == 2" in first.prompt_text
    assert "assert f(2) == 3" not in first.prompt_text
    assert first.reference == "def f(x):\n    return x + 1"


def test_scitldr_joins_its_sentences(tmp_path, monkeypatch):
    monkeypatch.setenv("TEXT2GRAD_DATA", str(tmp_path))
    row = {"paper_id": "p", "source": ["We add.", "It works."], "target": ["Adding works.", "It adds."]}
    for split in ("train", "dev"):
        write_gzip(tmp_path / "scitldr_a" / f"{split}.jsonl.gz", json.dumps(row))
    (example,) = load_examples("scitldr", "heldout")
    assert example.meta["document"] == "We add. It works."
    assert example.prompt_text.startswith("We add. It works.")
    assert example.reference == ["Adding works.", "It adds."]


def test_questions_about_one_paragraph_stay_together(tmp_path, monkeypatch):
    monkeypatch.setenv("TEXT2GRAD_DATA", str(tmp_path))
    paragraphs = [
        {
            "context": f"Paragraph {i}.",
            "qas": [{"id": f"{i}-{k}", "question": f"{k}?", "answers": [{"text": "x"}]} for k in range(2)],
        }
        for i in range(100)
    ]
    write_gzip(
        tmp_path / "xquad_en" / "xquad.en.json.gz", json.dumps({"data": [{"title": "t", "paragraphs": paragraphs}]})
    )
    train, heldout = ({e.meta["document"] for e in load_examples("xquad", split)} for split in ("train", "heldout"))
    assert not train & heldout
    assert len(train) + len(heldout) == 100
    assert 10 <= len(heldout) <= 30


def test_a_missing_file_of_a_data_set_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("TEXT2GRAD_DATA", str(tmp_path))
    with pytest.raises(UserError, match=r"that folder does not hold scitldr_a/train\.jsonl\.gz"):
        load_examples("scitldr", "train")


def test_without_a_folder_the_data_sets_come_from_the_hub(monkeypatch):
    monkeypatch.delenv("TEXT2GRAD_DATA", raising=False)
    question = {"id": "q1", "context": "Rome is big.", "question": "What?", "answers": {"text": ["Rome", "Rome"]}}
    rows = {
        "google-research-datasets/mbpp": [json.loads(problem(601)), json.loads(problem(11))],
        "parquet": [{"paper_id": "p", "source": ["We add."], "target": ["Adding."]}],
        "google/xquad": [question | {"id": str(i), "context": f"Paragraph {i}."} for i in range(20)],
    }
    asked = []

    def load_dataset(path, name=None, split=None, data_files=None):
        asked.append((path, name, split, data_files))
        return Dataset.from_list(rows[path])

    monkeypatch.setattr("datasets.load_dataset", load_dataset)
    assert [e.id for e in load_examples("mbpp", "train")] == ["mbpp-601"]
    assert [e.reference for e in load_examples("scitldr", "heldout")] == [["Adding."]]
    first, *_ = load_examples("xquad", "train")
    assert first.reference == ["Rome"]
    files = {"validation": "hf://datasets/allenai/scitldr@~parquet/Abstract/validation/*.parquet"}
    assert asked == [
        ("google-research-datasets/mbpp", "full", "train", None),
        ("parquet", None, "validation", files),
        ("google/xquad", "xquad.en", "validation", None),
    ]


def test_without_a_network_the_file_that_is_needed_is_named(monkeypatch):
    monkeypatch.delenv("TEXT2GRAD_DATA", raising=False)

    def load_dataset(**_):
        raise ConnectionError("Couldn't reach the hub")

    monkeypatch.setattr("datasets.load_dataset", load_dataset)
    with pytest.raises(UserError, match=r"\(Couldn't reach the hub\).*set TEXT2GRAD_DATA .* holds mbpp/mbpp.jsonl.gz"):
        load_examples("mbpp", "train")


@pytest.mark.parametrize("line", ['{"task_id": 1', "\\0", "[]", "3"])
def test_a_damaged_line_of_a_data_set_is_named(tmp_path, line):
    path = tmp_path / "rows.jsonl"
    path.write_text(f"{{}}\n{line}\n")
    with pytest.raises(UserError, match=r"rows\.jsonl:2: not (valid JSON|a JSON object)"):
        list(read_rows(path, "mbpp.jsonl"))


def test_an_unknown_name_is_refused_with_the_nearest_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match='unknown data set "mbbp"; did you mean "mbpp"'):
        load_examples("mbbp", "train")
    with pytest.raises(UserError, match=r"mine\.jsonl: no such file"):
        load_examples("mine.jsonl", "train")


@pytest.mark.parametrize("name", DATASETS)
def test_every_data_set_can_be_imported(name):
    module, _, function = DATASETS[name].partition(":")
    assert callable(getattr(importlib.import_module(module), function))


def test_a_split_depends_on_the_prompts_only():
    examples = [Example(id=str(i), prompt=f"prompt {i % 50}") for i in range(200)]
    train, heldout = split_by_prompt(examples, share=0.3)
    assert {e.prompt_text for e in train}.isdisjoint(e.prompt_text for e in heldout)
    again, _ = split_by_prompt(reversed(examples), share=0.3)
    assert {e.id for e in again} == {e.id for e in train}
    assert split_by_prompt(examples, share=0.3, salt="other")[1] != heldout
