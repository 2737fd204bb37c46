"""Crash-safe writing of files and folders, and reading of JSON lines and gzip files."""

from __future__ import annotations

import errno
import gzip
import json
import math
import os
import shutil
import uuid
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from text2grad.errors import UserError

MANIFEST = "text2grad_files.json"  # marks a folder that `replace_folder` wrote, and lists its files


@contextmanager
def open_maybe_gzip(path: Path, mode: str, **options: Any) -> Iterator[IO[Any]]:
    """Open a file for reading, decompressing `.gz` files; UserError where a gzip file is damaged."""
    open_file: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with open_file(path, mode, **options) as file:
            yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{path}: not a complete gzip file ({error}); compress it again") from error


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Raise UserError for a full disk or missing permissions."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise UserError(f"the disk is full while saving {path}; free space and continue with --resume") from error
        if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
            raise UserError(f"{path} cannot be written ({error.strerror}); choose another output_dir") from error
        raise


def replace_folder(folder: Path, kind: str, fill: Callable[[Path], object]) -> None:
    """Build a folder in a hidden sibling, then swap it in: at every moment the old or the new one is complete.

    Only a folder of the same kind that this function wrote is replaced, see `check_replaceable`; files that others have
    added to it are copied over. A kill between the two renames is undone by `recover_folder`.
    """
    folder = folder.resolve()
    recover_folder(folder)
    check_replaceable(folder, kind)
    new, old = _sibling(folder, "new"), _sibling(folder, "old")
    with disk_errors(folder):
        shutil.rmtree(new, ignore_errors=True)  # of a killed attempt
        new.mkdir(parents=True)
        try:
            fill(new)
            _write_manifest(new, kind)
            _copy_foreign_files(folder, new)
        except BaseException:
            shutil.rmtree(new, ignore_errors=True)
            raise
        for path in [*new.rglob("*"), new]:
            fsync_path(path)
        shutil.rmtree(old, ignore_errors=True)
        if folder.exists():
            folder.rename(old)
        new.rename(folder)
        fsync_path(folder.parent)
        shutil.rmtree(old, ignore_errors=True)


def check_replaceable(folder: Path, kind: str) -> None:
    """Reject a path with contents that `replace_folder` did not write for the same kind."""
    if folder.is_dir() and (not any(folder.iterdir()) or _read_manifest(folder).get("kind") == kind):
        return
    if folder.exists():
        raise UserError(f"{folder} exists and is not a text2grad {kind}; choose another folder, or move it away")


def recover_folder(folder: Path) -> None:
    """Undo a `replace_folder` that was killed between its two renames."""
    folder = folder.resolve()
    old = _sibling(folder, "old")
    if old.exists() and not folder.exists():
        old.rename(folder)


def _sibling(folder: Path, state: str) -> Path:
    """Return the hidden sibling of this state; nothing else has names like these."""
    return folder.with_name(f".{folder.name}.text2grad-{state}")


def _write_manifest(folder: Path, kind: str) -> None:
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    (folder / MANIFEST).write_text(json.dumps({"kind": kind, "files": sorted({*files, MANIFEST})}), encoding="utf-8")


def _read_manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return {}
    return manifest if isinstance(manifest, dict) else {}


def _copy_foreign_files(folder: Path, new: Path) -> None:
    """Copy what is in `folder` and not in its manifest to the same place in `new`, unless that was written anew."""
    own = set(_read_manifest(folder).get("files", ()))
    for path in folder.rglob("*") if folder.exists() else ():
        name = path.relative_to(folder)
        if path.is_file() and str(name) not in own and not (new / name).exists():
            (new / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, new / name)


def replace_text(path: Path, text: str) -> None:
    """Write a file completely, or leave the old one untouched."""
    new = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    with disk_errors(path):
        try:
            new.write_text(text, encoding="utf-8")
            fsync_path(new)
            new.replace(path)
        finally:
            new.unlink(missing_ok=True)


def append_json_lines(path: Path, records: list[dict[str, Any]]) -> None:
    """Append records and flush them to the disk; a kill can truncate only the last line."""
    with disk_errors(path), path.open("a", encoding="utf-8") as out:
        out.writelines(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n" for record in records)
        out.flush()
        os.fsync(out.fileno())


def read_json_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (`file:line`, record). A line that is not JSON raises, except the last, which a kill may have truncated."""
    truncated: UserError | None = None
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            if truncated is not None:
                raise truncated
            where = f"{path}:{number}"
            try:
                record = parse_json(line)
            except ValueError as error:
                truncated = UserError(f"{where}: not valid JSON ({error}); remove the line")
                continue
            if not isinstance(record, dict):
                raise UserError(f"{where}: not a JSON object; remove the line")
            yield where, record


def parse_json(text: bytes) -> Any:
    """Parse JSON; NaN and infinities, which the standard does not have, become null."""
    return json.loads(text, parse_constant=lambda _: None, parse_float=_parse_finite)


def _parse_finite(digits: str) -> float | None:
    value = float(digits)
    return value if math.isfinite(value) else None


def fsync_path(path: Path) -> None:
    """Flush a file or folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
