"""Rows of tables, JSON, saved datasets and the hub, with their positions; a broken row says so."""

from __future__ import annotations

import gzip
import json

import pyarrow
import pyarrow.parquet
import pytest
from datasets import Dataset, DatasetDict

from text2grad.data.hub import HubReference, parse_reference
from text2grad.data.rows import read_rows_of
from text2grad.errors import UserError

RECORDS = [{"prompt": "a", "n": 1}, {"prompt": "b\nc, d", "n": 2}]


def fields(source, split="train"):
    return [row.fields for row in read_rows_of(source, split)]


@pytest.fixture
def write(tmp_path):
    def write(name):
        path = tmp_path / name
        lines = "".join(json.dumps(record) + "\n" for record in RECORDS)
        if name.endswith(".jsonl"):
            path.write_text(lines)
        elif name.endswith(".gz"):
            path.write_bytes(gzip.compress(lines.encode()))
        elif name.endswith(".json"):
            path.write_text(json.dumps(RECORDS))
        elif name.endswith(".parquet"):
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(RECORDS), path)
        elif name.startswith("stream"):
            table = pyarrow.Table.from_pylist(RECORDS)
            with pyarrow.ipc.new_stream(path, table.schema) as out:
                out.write_table(table)
        elif name.startswith("file"):
            table = pyarrow.Table.from_pylist(RECORDS)
            with pyarrow.ipc.new_file(path, table.schema) as out:
                out.write_table(table)
        else:
            Dataset.from_list(RECORDS).save_to_disk(path)
        return path

    return write


@pytest.mark.parametrize(
    "name", ["a.jsonl", "a.jsonl.gz", "a.json", "a.parquet", "stream.arrow", "file.arrow", "saved"]
)
def test_the_same_rows_from_every_format(write, name):
    path = write(name)
    rows = list(read_rows_of(path))
    assert [row.fields for row in rows] == RECORDS
    assert all(row.where.startswith(str(path)) for row in rows)
    assert len({row.name for row in rows}) == 2


@pytest.mark.parametrize(
    ("name", "text"), [("a.csv", 'p,q\n"x, y",1\n'), ("a.csv", "p;q\nx, y;1\n"), ("a.tsv", "p\tq\nx, y\t1\n")]
)
def test_tables(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    (row,) = read_rows_of(tmp_path / name)
    assert row.fields == {"p": "x, y", "q": "1"}
    assert (row.where, row.name) == (f"{tmp_path / name}:2", "a-2")


@pytest.mark.parametrize("key", ["records", "samples"])
def test_json_files_may_keep_their_records_under_a_key(tmp_path, key):
    (tmp_path / "a.json").write_text(json.dumps({key: RECORDS, "version": 1}))
    assert fields(tmp_path / "a.json") == RECORDS


def test_splits_of_saved_datasets(tmp_path):
    parts = {name: Dataset.from_list([{"prompt": name}]) for name in ("train", "test")}
    DatasetDict(parts).save_to_disk(tmp_path / "saved")
    assert fields(tmp_path / "saved") == [{"prompt": "train"}]
    assert fields(tmp_path / "saved", "heldout") == [{"prompt": "test"}]
    assert fields(f"{tmp_path / 'saved'}#test") == [{"prompt": "test"}]
    with pytest.raises(UserError, match="no split dev; there are train, test"):
        fields(f"{tmp_path / 'saved'}#dev")
    DatasetDict({"train": parts["train"]}).save_to_disk(tmp_path / "one")
    with pytest.raises(UserError, match=r"which split\? There are train; name one"):
        fields(tmp_path / "one", "heldout")


def test_a_folder_of_data_files_is_a_dataset(tmp_path, monkeypatch):
    folder = tmp_path / "downloaded"
    (folder / "data").mkdir(parents=True)
    for name, record in (("train", {"prompt": "a"}), ("validation", {"prompt": "b"})):
        table = pyarrow.Table.from_pylist([record])
        pyarrow.parquet.write_table(table, folder / "data" / f"{name}-00000-of-00001.parquet")
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    assert fields(folder) == [{"prompt": "a"}]
    assert fields(folder, "heldout") == [{"prompt": "b"}]
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="empty: an empty folder"):
        fields(tmp_path / "empty")


def test_a_row_that_is_nested_too_deeply_costs_no_other(tmp_path):
    deep = "[" * 100_000 + "]" * 100_000
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"q": 1}}\n{{"q": {deep}}}\n{{"q": 2}}\n')
    first, broken, last = read_rows_of(path)
    assert (first.fields, last.fields) == ({"q": 1}, {"q": 2})
    assert "not valid JSON" in str(broken.error)
    (tmp_path / "a.json").write_text(deep)
    with pytest.raises(UserError, match=r"a\.json: not valid JSON"):
        list(read_rows_of(tmp_path / "a.json"))


def test_broken_rows_are_named_and_the_others_read(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"p": 1}\n{"p": \n[1]\n\n{"p": 2}\n')
    rows = list(read_rows_of(tmp_path / "a.jsonl"))
    assert [row.fields for row in rows] == [{"p": 1}, {}, {}, {"p": 2}]
    assert [(row.where.rpartition(":")[2], row.error and row.error.partition(" (")[0]) for row in rows] == [
        ("1", None), ("2", "not valid JSON"), ("3", "not a JSON object"), ("5", None),
    ]  # fmt: skip
    (tmp_path / "A.CSV").write_text("p,q\n1,2\n1,2,3\n")
    assert [row.error is None for row in read_rows_of(tmp_path / "A.CSV")] == [True, False]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.xlsx", b"PK", r"a\.xlsx: a spreadsheet; save it as CSV"),
        ("a.csv", b"p,q\n1,\xff\n", r"a\.csv: not UTF-8"),
        ("a.csv", b'"p" x,q\n1,2\n', r"a\.csv:1: not valid CSV"),
        ("a.csv", b"PK\x03\x04...", r"a\.csv: a spreadsheet, whatever its name says; save it as CSV"),
        ("a.json", b"[", r"a\.json: not valid JSON"),
        ("a.jsonl.gz", b"\x1f\x8b", r"a\.jsonl\.gz: not a complete gzip file"),
        ("a.parquet", b"PAR1", r"a\.parquet: not a complete parquet file"),
        ("a.arrow", b"ARROW1", r"a\.arrow: not a complete arrow file"),
    ],
)
def test_files_that_cannot_be_read_are_sentences(tmp_path, name, content, says):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=says):
        list(read_rows_of(tmp_path / name))


def test_a_missing_file_says_what_could_be_given(tmp_path):
    with pytest.raises(UserError, match=r"no such file; give a JSON lines, .* or hf:OWNER/NAME"):
        list(read_rows_of(tmp_path / "no.parquet"))


# The hub


@pytest.mark.parametrize(
    ("source", "parsed"),
    [
        ("hf:openai/gsm8k", ("openai/gsm8k", None, None)),
        ("hf:openai/gsm8k:main", ("openai/gsm8k", "main", None)),
        ("hf:openai/gsm8k#train[:100]", ("openai/gsm8k", None, "train[:100]")),
        ("hf:google/xquad:xquad.en#validation", ("google/xquad", "xquad.en", "validation")),
        ("hf:imdb#test", ("imdb", None, "test")),
    ],
)
def test_references(source, parsed):
    assert parse_reference(source) == HubReference(*parsed)


def test_a_malformed_reference_is_refused():
    with pytest.raises(UserError, match=r"hf:a/b/c is not of the form hf:OWNER/NAME"):
        parse_reference("hf:a/b/c")


@pytest.fixture
def hub(monkeypatch):
    """A stand-in for the hub with one dataset of two splits; returns what was asked for."""
    parts = {name: Dataset.from_list([{"prompt": name}]) for name in ("train", "validation", "test")}
    asked = []

    def load_dataset(path, name=None, split=None):
        asked.append((path, name, split))
        if path != "me/mine":
            raise FileNotFoundError(f"Dataset '{path}' doesn't exist on the Hub.\nmore")
        return parts[split] if split else DatasetDict(parts)

    monkeypatch.setattr("datasets.load_dataset", load_dataset)
    return asked


def test_datasets_of_the_hub(hub):
    assert fields("hf:me/mine") == [{"prompt": "train"}]
    assert fields("hf:me/mine", "heldout") == [{"prompt": "validation"}]
    (row,) = read_rows_of("hf:me/mine:small#test")
    assert (row.fields, row.where, row.name) == ({"prompt": "test"}, "hf:me/mine:small#test row 0", "mine-0")
    assert hub == [("me/mine", None, None), ("me/mine", None, None), ("me/mine", "small", "test")]


def test_a_dataset_that_cannot_be_loaded_says_why_and_what_to_do(hub):
    with pytest.raises(UserError, match=r"hf:me/mien cannot be loaded \(Dataset 'me/mien' doesn't exist on the Hub\)"):
        fields("hf:me/mien")
