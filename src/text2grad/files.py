"""Crash-safe writing of files, locks, and reading of JSON lines and gzip files."""

from __future__ import annotations

import errno
import fcntl
import gzip
import hashlib
import json
import logging
import math
import os
import re
import socket
import uuid
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path
from typing import IO, Any

from text2grad.errors import UserError

log = logging.getLogger(__name__)
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
FORBIDDEN = (errno.EACCES, errno.EROFS, errno.EPERM)
NO_LOCKS = (errno.ENOTSUP, errno.ENOSYS, errno.ENOLCK)


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
    except Exception as error:
        code = _error_number(error)
        if code in FULL:
            raise UserError(
                f"the disk is full while saving {path}; free space and repeat the command, a training run with --resume"
            ) from error
        if code in FORBIDDEN:
            raise UserError(f"{path} cannot be written ({os.strerror(code)}); choose another place") from error
        raise


def _error_number(error: Exception) -> int:
    """Return the operating system's error number; safetensors and tokenizers have it in the text. 0: none."""
    if isinstance(error, OSError):
        return error.errno or 0
    found = re.search(r"\(os error (\d+)\)", str(error))
    return int(found[1]) if found else 0


@contextmanager
def exclusive_lock(lock: Path, locked: Path) -> Iterator[None]:
    """Raise UserError if another process holds the lock; it ends with its process, also after a kill.

    lock: a file that exists while it is held. locked: what is written, for the error.
    """
    with disk_errors(locked):
        lock.parent.mkdir(parents=True, exist_ok=True)
        file = lock.open("a+", encoding="utf-8")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The previous holder may have removed the file in between: this lock would then be on a deleted file.
            if not lock.exists() or not os.path.samestat(os.fstat(file.fileno()), lock.stat()):
                raise BlockingIOError
        except BlockingIOError as error:
            file.seek(0)
            holder = file.read().strip() or "another process"
            raise UserError(f"{locked} is being written by {holder}; wait for it, or choose another place") from error
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
            log.warning("%s is on a file system without locks: let no other process write there", locked)
        try:
            with disk_errors(locked):
                file.truncate(0)
                file.write(f"process {os.getpid()} on {socket.gethostname()}")
                file.flush()
            yield
        finally:
            lock.unlink(missing_ok=True)


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


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file, as 64 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def unused_path(path: Path) -> Path:
    """Return the path, or the first of `NAME-2`, `NAME-3`, ... that does not exist."""
    candidates = (path.with_name(f"{path.name}-{number}") for number in count(2))
    return next(candidate for candidate in chain([path], candidates) if not os.path.lexists(candidate))


def fsync_path(path: Path) -> None:
    """Flush a file or folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
