"""Writing that a kill or a full disk cannot damage, and reading what may be packed."""

from __future__ import annotations

import errno
import gzip
import json
import math
import os
import shutil
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from text2grad.errors import UserError


@contextmanager
def opened(path: Path, mode: str, **options: Any) -> Iterator[IO[Any]]:
    """A file to read, plain or gzipped by its name; UserError where it is not the whole gzip file that it should be."""
    open_it: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with open_it(path, mode, **options) as file:
            yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{path}: not a whole gzip file ({error}); pack it again") from error


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn a full disk or a forbidden folder into a sentence; what was saved before stays as it was."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise UserError(f"the disk is full while saving {path}; free space and continue with --resume") from error
        if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
            raise UserError(f"{path} cannot be written ({error.strerror}); choose another output_dir") from error
        raise


def replace_folder(folder: Path, fill: Callable[[Path], object]) -> None:
    """Build a folder beside its place, then swap it in: at every moment the old or the new one is whole.

    Between the two renames only `folder.old` exists; `recover_folder` puts it back.
    """
    new, old = folder.with_name(folder.name + ".new"), folder.with_name(folder.name + ".old")
    with disk_errors(folder):
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        try:
            fill(new)
        except BaseException:
            shutil.rmtree(new, ignore_errors=True)
            raise
        for path in [*new.iterdir(), new]:
            sync(path)
        shutil.rmtree(old, ignore_errors=True)
        if folder.exists():
            folder.rename(old)
        new.rename(folder)
        sync(folder.parent)
        shutil.rmtree(old, ignore_errors=True)


def recover_folder(folder: Path) -> None:
    """Undo a `replace_folder` that was killed between its two renames."""
    old = folder.with_name(folder.name + ".old")
    if old.exists() and not folder.exists():
        old.rename(folder)


def replace_text(path: Path, text: str) -> None:
    """Write a whole file, or leave the old one untouched."""
    new = path.with_name(path.name + ".new")
    with disk_errors(path):
        try:
            new.write_text(text, encoding="utf-8")
            sync(new)
            new.replace(path)
        finally:
            new.unlink(missing_ok=True)


def append_json_lines(path: Path, records: list[dict[str, Any]]) -> None:
    """Append records and hand them to the disk; a kill can tear only the last line."""
    with disk_errors(path), path.open("a", encoding="utf-8") as out:
        out.writelines(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n" for record in records)
        out.flush()
        os.fsync(out.fileno())


def read_json_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Stream (`file:line`, record). An unparsable line is an error, but for the last, which a kill may have torn."""
    torn: UserError | None = None
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            if torn is not None:
                raise torn
            where = f"{path}:{number}"
            try:
                record = parse_json(line)
            except ValueError as error:
                torn = UserError(f"{where}: not valid JSON ({error}); remove the line")
                continue
            if not isinstance(record, dict):
                raise UserError(f"{where}: not a JSON object; remove the line")
            yield where, record


def parse_json(text: bytes) -> Any:
    """JSON in which NaN and the infinities, which the standard does not have, become null."""
    return json.loads(text, parse_constant=lambda _: None, parse_float=_finite)


def _finite(digits: str) -> float | None:
    value = float(digits)
    return value if math.isfinite(value) else None


def sync(path: Path) -> None:
    """Wait until the disk has it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
