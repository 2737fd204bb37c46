"""The output file of an annotation run: append-only JSON lines, synced in batches, repaired after a kill."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from text2grad.annotate.summary import Summary
from text2grad.errors import UserError
from text2grad.files import append_json_lines, disk_errors, fsync_path
from text2grad.schema import Example

META_KEY = "annotation"  # the entry of an example's meta with its key and its critic's digest
_RECORD_START = b'{"id":'


def record_key(example: Example, critic: str, reads_feedback: bool = False) -> bytes:
    """Return 16 bytes that identify the critic and everything of the example that it may read.

    That is the prompt, the completion and what comes with them (id, reference, tests, meta); the feedback that the
    example already has only for a critic that reads it.
    """
    ignored = None if reads_feedback else {"feedback"}
    content = example.model_dump(mode="json", exclude=ignored, exclude_defaults=True)
    content.get("meta", {}).pop(META_KEY, None)
    if not content.get("meta"):
        content.pop("meta", None)
    text = json.dumps([critic, content], sort_keys=True, ensure_ascii=True)
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


class AnnotationStore:
    """The records of one critic.

    done: their keys, about 100 bytes of memory per record.
    """

    def __init__(self, path: Path, critic: str) -> None:
        self.path = path
        self.stale_path = path.with_name(f"{path.stem}.stale{path.suffix}")
        self.critic = critic
        self.done: set[bytes] = set()

    def open(self, summary: Summary, retry_failed: bool) -> None:
        """Repair the file after a kill, count its records, and remove those of other critics or settings.

        These are moved to `stale_path`. retry_failed: remove failed records too, so that they are annotated again.
        """

        def is_kept(record: dict[str, Any]) -> bool:
            return self._is_own(record) and not (retry_failed and record["feedback"].get("status") == "failed")

        self.path.touch()
        num_bytes = num_removed = 0
        for line, record in read_records(self.path):
            num_bytes += len(line)
            if is_kept(record):
                self.done.add(bytes.fromhex(record["meta"][META_KEY]["key"]))
                summary.add(record)
            else:
                num_removed += 1
                summary.stale += not self._is_own(record)
        _drop_partial_line(self.path, num_bytes)
        if summary.stale:
            stale = (line for line, record in read_records(self.path) if not self._is_own(record))
            _write_lines(self.stale_path, "ab", stale)
        if num_removed:
            new = self.path.with_name(f".{self.path.name}.new")
            _write_lines(new, "wb", (line for line, record in read_records(self.path) if is_kept(record)))
            new.replace(self.path)
            fsync_path(self.path.parent)

    def append(self, records: list[dict[str, Any]]) -> None:
        """Append records, all or none; they are on the disk when this returns."""
        if not records:
            return
        size = self.path.stat().st_size
        try:
            append_json_lines(self.path, records)
        except BaseException:
            os.truncate(self.path, size)
            raise

    def _is_own(self, record: dict[str, Any]) -> bool:
        annotation = record.get("meta", {}).get(META_KEY)
        return isinstance(annotation, dict) and annotation.get("critic") == self.critic and "key" in annotation


def read_records(path: Path) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Yield (line, record), without an unterminated last line; the error of any other content names its line."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.endswith(b"\n"):
                return
            try:
                record = json.loads(line)
            except ValueError:
                record = None
            if not isinstance(record, dict) or not isinstance(record.get("feedback"), dict):
                raise UserError(f"{path}:{number}: this is not an annotated record; give another file to write to")
            yield line, record


@contextmanager
def exclusive_lock(path: Path) -> Iterator[None]:
    """Raise UserError if another process writes the file; the lock ends with its process."""
    lock = path.with_name(f".{path.name}.lock")
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = lock.open("w")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The previous holder may have removed the file in between: this lock would then be on a deleted file.
            if not lock.exists() or not os.path.samestat(os.fstat(file.fileno()), lock.stat()):
                raise BlockingIOError
        except BlockingIOError as error:
            raise UserError(f"another run is writing {path}; wait for it, or give another file") from error
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


def _drop_partial_line(path: Path, num_bytes: int) -> None:
    """Remove what follows the complete lines: a kill during a write leaves part of a record there.

    A file without any complete line may also be a user's; it is moved to NAME.partial if it starts like a record.
    """
    with path.open("rb") as file:
        file.seek(num_bytes)
        rest = file.read(len(_RECORD_START))
    if rest and not num_bytes:
        if rest != _RECORD_START:
            raise UserError(f"{path}: this is not a file of annotated records; give another file to write to")
        path.replace(path.with_name(f"{path.name}.partial"))
        path.touch()
    elif rest:
        with disk_errors(path):
            os.truncate(path, num_bytes)
            fsync_path(path)


def _write_lines(path: Path, mode: str, lines: Iterable[bytes]) -> None:
    with disk_errors(path):
        with path.open(mode) as file:
            file.writelines(lines)
        fsync_path(path)
