"""Rows of a data set, wherever it lies: local tables and JSON, saved datasets, and the Hugging Face hub."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from text2grad.data.hub import HUB, load_hub_dataset, load_local_dataset
from text2grad.data.split import Split
from text2grad.data.tables import SAVE_AS_CSV, read_table
from text2grad.errors import UserError
from text2grad.files import open_maybe_gzip

if TYPE_CHECKING:
    from datasets import Dataset

TABLES = (".csv", ".tsv")
SPREADSHEETS = (".xlsx", ".xls", ".ods", ".numbers")
CONTAINERS = ("records", "samples", "data")  # keys under which JSON files keep their list of records
_BATCH_ROWS = 1_000


@dataclass(frozen=True)
class Row:
    """One record. where: its position for messages. name: an id for records without one.

    error: why it could not be read; it has no fields then.
    """

    where: str
    name: str
    fields: dict[str, Any] = field(default_factory=dict)
    error: str | None = None


def read_rows_of(source: str | Path, split: Split = "train") -> Iterator[Row]:
    """Stream the rows of `hf:OWNER/NAME[:config][#split]`, or of a local file or folder.

    Local: JSON lines, JSON, CSV, TSV (each may be gzipped), Parquet, Arrow, and folders of `save_to_disk` or of data
    files, with `FOLDER#split` for one split. split: which one to take where the source names none.
    A row that cannot be read has an `error`; a source that cannot be read raises UserError.
    """
    source = str(source)
    if source.startswith(HUB):
        return _dataset_rows(load_hub_dataset(source, split), source)
    path, name = _split_name(source)
    if path.is_dir():
        return _dataset_rows(load_local_dataset(path, name, split), source)
    if not path.is_file():
        raise UserError(
            f"{source}: no such file; give a JSON lines, JSON, CSV, Parquet or Arrow file, the folder of a saved "
            f"dataset, or hf:OWNER/NAME"
        )
    return _file_rows(path)


def _split_name(source: str) -> tuple[Path, str | None]:
    """Return path and split of `FOLDER#split`; a path that exists is taken as it is."""
    head, mark, name = source.rpartition("#")
    if mark and not Path(source).exists() and Path(head).is_dir():
        return Path(head), name
    return Path(source), None


def _file_rows(path: Path) -> Iterator[Row]:
    suffix = (path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix).lower()
    if suffix in SPREADSHEETS:
        raise UserError(f"{path}: a spreadsheet; {SAVE_AS_CSV}")
    if suffix in TABLES:
        return _table_rows(path, "\t" if suffix == ".tsv" else None)
    if suffix == ".parquet":
        return _batch_rows(_parquet_batches(path), path)
    if suffix == ".arrow":
        return _batch_rows(_arrow_batches(path), path)
    return _json_rows(path) if suffix == ".json" else _json_line_rows(path)


def _dataset_rows(dataset: Dataset, source: str) -> Iterator[Row]:
    stem = source.removeprefix(HUB).rstrip("/").rpartition("/")[2].partition("#")[0].partition(":")[0]
    for number, fields in enumerate(dataset):
        yield Row(f"{source} row {number}", f"{stem}-{number}", dict(fields))


def _table_rows(path: Path, delimiter: str | None) -> Iterator[Row]:
    for number, cells in read_table(path, delimiter):
        where, name = f"{path}:{number}", f"{_stem(path)}-{number}"
        yield Row(where, name, error=cells) if isinstance(cells, str) else Row(where, name, dict(cells))


def _json_line_rows(path: Path) -> Iterator[Row]:
    with open_maybe_gzip(path, "rt", encoding="utf-8-sig") as lines:  # some editors write a byte order mark
        try:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield _parse_row(line, f"{path}:{number}", f"{_stem(path)}-{number}")
        except UnicodeDecodeError as error:
            raise UserError(f"{path}: not UTF-8 ({error}); save it as UTF-8") from error


def _json_rows(path: Path) -> Iterator[Row]:
    """Records of a JSON file: a list, one of CONTAINERS with a list, or a single record."""
    with open_maybe_gzip(path, "rt", encoding="utf-8-sig") as file:
        try:
            content = json.load(file)
        except UnicodeDecodeError as error:
            raise UserError(f"{path}: not UTF-8 ({error}); save it as UTF-8") from error
        except (ValueError, RecursionError) as error:
            raise UserError(f"{path}: not valid JSON ({error}); write it again") from error
    if isinstance(content, dict):
        content = next((content[key] for key in CONTAINERS if isinstance(content.get(key), list)), [content])
    for number, record in enumerate(content if isinstance(content, list) else [content], 1):
        yield _to_row(record, f"{path}: record {number}", f"{_stem(path)}-{number}")


def _parse_row(line: str, where: str, name: str) -> Row:
    try:
        return _to_row(json.loads(line), where, name)
    except (ValueError, RecursionError) as error:
        return Row(where, name, error=f"not valid JSON ({error})")


def _to_row(record: Any, where: str, name: str) -> Row:
    return Row(where, name, record) if isinstance(record, dict) else Row(where, name, error="not a JSON object")


def _parquet_batches(path: Path) -> Iterator[Any]:
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path) as file:
        yield from file.iter_batches(_BATCH_ROWS)


def _arrow_batches(path: Path) -> Iterator[Any]:
    """Batches of either of Arrow's formats: the stream that `datasets` writes, or the file."""
    import pyarrow

    with pyarrow.memory_map(str(path)) as source:
        try:
            table = pyarrow.ipc.open_stream(source).read_all()
        except pyarrow.ArrowInvalid:
            source.seek(0)
            table = pyarrow.ipc.open_file(source).read_all()
        yield from table.to_batches(_BATCH_ROWS)


def _batch_rows(batches: Iterable[Any], path: Path) -> Iterator[Row]:
    import pyarrow

    try:
        records = (record for batch in batches for record in batch.to_pylist())
        for number, record in enumerate(records):
            yield Row(f"{path} row {number}", f"{_stem(path)}-{number}", record)
    except pyarrow.ArrowInvalid as error:
        raise UserError(f"{path}: not a complete {path.suffix[1:]} file ({error}); write it again") from error


def _stem(path: Path) -> str:
    return path.name.partition(".")[0]
