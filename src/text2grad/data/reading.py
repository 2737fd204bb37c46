"""Files of public data sets: where to find them, and how to read them, plain or gzipped."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any

from text2grad.errors import UserError
from text2grad.files import open_maybe_gzip

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


def find_dataset_file(dataset: str, path: str) -> Path:
    """Return the location of `path` in the folder that the environment variable TEXT2GRAD_DATA names."""
    folder = os.environ.get(DATA_FOLDER)
    if folder is None or not Path(folder, path).is_file():
        raise UserError(
            f'data set "{dataset}": {DATA_FOLDER} must name a folder that holds {path} '
            f"(now: {folder or 'not set'}); or give the path of a JSON lines file instead"
        )
    return Path(folder, path)
