"""Files of public data sets: where to find them, and how to read them, plain or gzipped."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from text2grad.data.hub import load_split
from text2grad.errors import UserError
from text2grad.files import open_maybe_gzip

if TYPE_CHECKING:
    from datasets import Dataset

DATA_FOLDER = "TEXT2GRAD_DATA"  # environment variable


def open_dataset_file(path: str | Path, expected: str, newline: str | None = None) -> AbstractContextManager[IO[str]]:
    """Open a text file, plain or gzipped. expected: the file that the error names if `path` does not exist."""
    path = Path(path)
    if not path.is_file():
        raise UserError(f"{path}: no such file; give the path of {expected}")
    return open_maybe_gzip(path, "rt", encoding="utf-8", newline=newline)


def read_rows(path: str | Path, expected: str) -> Iterator[dict[str, Any]]:
    """Stream the rows of a JSON lines file; `expected` as in `open_dataset_file`."""
    with open_dataset_file(path, expected) as lines:
        for number, line in enumerate(lines, 1):
            try:
                row = json.loads(line)
            except ValueError as error:
                raise UserError(f"{path}:{number}: not valid JSON ({error}); download the file again") from error
            if not isinstance(row, dict):
                raise UserError(f"{path}:{number}: not a JSON object; give the path of {expected}")
            yield row


def find_dataset_file(path: str) -> Path | None:
    """Return the location of `path` in the folder that the environment variable TEXT2GRAD_DATA names, if it is set."""
    folder = os.environ.get(DATA_FOLDER)
    if folder is None:
        return None
    if not Path(folder, path).is_file():
        raise UserError(
            f"{DATA_FOLDER} is {folder}, but that folder does not hold {path}; correct it, or unset it to load the "
            f"data set from the Hugging Face hub"
        )
    return Path(folder, path)


def load_from_hub(dataset: str, file: str, split: str, **options: Any) -> Dataset:
    """Load a split of a public data set from the hub; where that fails, the error names `file` as well.

    options: of `datasets.load_dataset`.
    """
    try:
        return load_split(f'data set "{dataset}"', "train", split, **options)
    except UserError as error:
        raise UserError(f"{error}; or set {DATA_FOLDER} to a folder that holds {file}") from error
