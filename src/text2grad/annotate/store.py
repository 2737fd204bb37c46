"""The output file of an annotation: append-only, synced in batches, whole again after a kill."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from text2grad.annotate.keys import META
from text2grad.annotate.summary import Summary
from text2grad.errors import UserError
from text2grad.files import append_json_lines, disk_errors, fsync_path

_BLOCK = 1 << 16


class Store:
    """The records that one critic has made so far.

    `done` holds their keys: about 100 bytes of memory a record, 100 MB for a million.
    """

    def __init__(self, path: Path, critic: str) -> None:
        self.path = path
        self.aside = path.with_name(f"{path.stem}.stale{path.suffix}")
        self.critic = critic
        self.done: set[bytes] = set()

    def open(self, summary: Summary, retry_failed: bool) -> None:
        """Mend the file, move records of other critics aside, forget failed ones if asked, and count the others."""
        self.path.touch()
        refuse_strangers(self.path)
        cut_torn_line(self.path)
        stale = failed = 0
        for record in read_records(self.path):
            if not self._ours(record):
                stale += 1
            elif retry_failed and _failed(record):
                failed += 1
            else:
                self.done.add(bytes.fromhex(record["meta"][META]["key"]))
                summary.add(record)
        if stale:
            self._copy_aside()
        if stale or failed:
            keep_records(self.path, lambda record: self._ours(record) and not (retry_failed and _failed(record)))
        summary.set_aside = stale

    def append(self, records: list[dict[str, Any]]) -> None:
        """Add finished records; when this returns, a kill or a power cut cannot take them away.

        All or none: half a line left by a full disk would join with the next record.
        """
        size = self.path.stat().st_size
        try:
            append_json_lines(self.path, records)
        except BaseException:
            os.truncate(self.path, size)
            raise

    def _ours(self, record: dict[str, Any]) -> bool:
        made = record.get("meta", {}).get(META)
        return isinstance(made, dict) and made.get("critic") == self.critic and "key" in made

    def _copy_aside(self) -> None:
        batch: list[dict[str, Any]] = []
        for record in read_records(self.path):
            if not self._ours(record):
                batch.append(record)
            if len(batch) == 1000:
                append_json_lines(self.aside, batch)
                batch = []
        append_json_lines(self.aside, batch)


def read_records(path: Path) -> Iterator[dict[str, Any]]:
    """The records of an output file, one at a time; the error names the line."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                record = json.loads(line)
                is_record = isinstance(record, dict) and isinstance(record.get("feedback"), dict)
            except ValueError:
                is_record = False
            if not is_record:
                raise UserError(f"{path}:{number}: this is no annotated record; give another file to write to")
            yield record


def keep_records(path: Path, wanted: Callable[[dict[str, Any]], bool]) -> None:
    """Rewrite the file with the wanted records only; at every moment the old or the new file is whole."""
    new = path.with_name(path.name + ".new")
    with disk_errors(path):
        with new.open("w", encoding="utf-8") as out:
            out.writelines(
                json.dumps(record, ensure_ascii=False) + "\n" for record in read_records(path) if wanted(record)
            )
        fsync_path(new)
        new.replace(path)
        fsync_path(path.parent)


def refuse_strangers(path: Path) -> None:
    """Raise UserError where the file does not begin as ours do, before anything in it is touched.

    Nothing but half a line may be the first write of a run that was killed, or anybody's: it is moved to NAME.torn.
    """
    with path.open("rb") as file:
        first = file.readline()
    if first.endswith(b"\n"):
        next(read_records(path))
    elif first.startswith(b'{"id":'):
        path.replace(path.with_name(f"{path.name}.torn"))
        path.touch()
    elif first:
        raise UserError(f"{path}: this is no file of annotated records; give another file to write to")


def cut_torn_line(path: Path) -> None:
    """Drop what follows the last line break: a kill in the middle of a write leaves half a record there."""
    with disk_errors(path), path.open("r+b") as file:
        size = end = file.seek(0, os.SEEK_END)
        while end > 0:
            start = max(0, end - _BLOCK)
            file.seek(start)
            newline = file.read(end - start).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
        if end < size:
            file.truncate(end)
            os.fsync(file.fileno())


@contextmanager
def sole_writer(path: Path) -> Iterator[None]:
    """Refuse to write where another run is writing; the lock goes with its process, however that ends."""
    lock = path.with_name(f".{path.name}.lock")
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = lock.open("w")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever held it may have removed the file in between: this lock would then be on nothing.
            if not lock.exists() or not os.path.samestat(os.fstat(file.fileno()), lock.stat()):
                raise BlockingIOError
        except BlockingIOError as error:
            raise UserError(f"another run is writing {path}; wait for it, or give another file") from error
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


def _failed(record: dict[str, Any]) -> bool:
    return bool(record["feedback"].get("status") == "failed")
