"""Files of public data sets, plain or gzipped."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO

from text2grad.errors import UserError
from text2grad.files import open_maybe_gzip


def open_published(path: str | Path, wanted: str, newline: str | None = None) -> AbstractContextManager[IO[str]]:
    """The file's text. wanted: what the error asks for where there is no such file."""
    path = Path(path)
    if not path.is_file():
        raise UserError(f"{path}: no such file; give the path of {wanted}")
    return open_maybe_gzip(path, "rt", encoding="utf-8", newline=newline)
