"""Files of public data sets, plain or gzipped."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TextIO, cast

from text2grad.errors import UserError


def open_published(path: str | Path, wanted: str, newline: str | None = None) -> TextIO:
    """The file's text. wanted: what the error asks for where there is no such file."""
    path = Path(path)
    if not path.is_file():
        raise UserError(f"{path}: no such file; give the path of {wanted}")
    opener = gzip.open if path.suffix == ".gz" else open
    return cast(TextIO, opener(path, "rt", encoding="utf-8", newline=newline))
