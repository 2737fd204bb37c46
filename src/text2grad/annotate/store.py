"""The output file of an annotation run: append-only JSON lines, synced in batches, repaired after a kill."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from text2grad.annotate.summary import Summary
from text2grad.errors import UserError
from text2grad.files import append_json_lines, disk_errors, fsync_path, unused_path
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

    done: their keys, about 100 bytes of memory per record, and whether this run has found them in the source.
    """

    def __init__(self, path: Path, critic: str, reads_feedback: bool = False) -> None:
        self.path = path
        self.stale_path = path.with_name(f"{path.stem}.stale{path.suffix}")
        self.critic, self.reads_feedback = critic, reads_feedback
        self.done: dict[bytes, bool] = {}

    def key(self, example: Example) -> bytes:
        """Return the key of an example for this critic."""
        return record_key(example, self.critic, self.reads_feedback)

    def open(self, summary: Summary, retry_failed: bool) -> None:
        """Repair the file after a kill, count its records, and remove those of other critics or settings.

        These, and records that have changed, are moved to `stale_path`. retry_failed: remove failed records too, so
        that they are annotated again. The file is created with its first record.
        """

        def is_kept(example: Example) -> bool:
            assert example.feedback is not None
            return self._is_own(example) and not (retry_failed and example.feedback.status == "failed")

        if not self.path.exists():
            return
        num_bytes = num_removed = 0
        for line, example in read_records(self.path):
            num_bytes += len(line)
            if is_kept(example):
                self.done[bytes.fromhex(example.meta[META_KEY]["key"])] = False
                summary.add(example.model_dump(mode="json", exclude_defaults=True))
            else:
                num_removed += 1
                summary.stale += not self._is_own(example)
        _drop_partial_line(self.path, num_bytes)
        if summary.stale:
            stale = (line for line, example in read_records(self.path) if not self._is_own(example))
            _write_lines(self.stale_path, "ab", stale)
        if num_removed:
            new = self.path.with_name(f".{self.path.name}.new")
            _write_lines(new, "wb", (line for line, example in read_records(self.path) if is_kept(example)))
            new.replace(self.path)
            fsync_path(self.path.parent)

    def append(self, records: list[dict[str, Any]]) -> None:
        """Append records, all or none; they are on the disk when this returns."""
        if not records:
            return
        size = self.path.stat().st_size if self.path.exists() else None
        try:
            append_json_lines(self.path, records)
        except BaseException:
            if size is None:
                self.path.unlink(missing_ok=True)
            else:
                os.truncate(self.path, size)
            raise

    def _is_own(self, example: Example) -> bool:
        """Whether a record is of this critic and has the content that its key was computed from.

        The latter is unknown for a critic that reads feedback: it has replaced what it has read.
        """
        annotation = example.meta.get(META_KEY)
        if not isinstance(annotation, dict) or annotation.get("critic") != self.critic:
            return False
        key = str(annotation.get("key"))
        return re.fullmatch("[0-9a-f]{32}", key) is not None if self.reads_feedback else self.key(example).hex() == key


def read_records(path: Path) -> Iterator[tuple[bytes, Example]]:
    """Yield (line, record), without an unterminated last line; the error of any other content names its line."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.endswith(b"\n"):
                return
            try:
                example = Example.model_validate_json(line)
            except ValidationError:
                example = None
            if example is None or example.feedback is None:
                raise UserError(
                    f"{path}:{number}: this is not an annotated record, or it is damaged; remove the line, or give "
                    f"another file to write to"
                )
            yield line, example


def _drop_partial_line(path: Path, num_bytes: int) -> None:
    """Remove what follows the complete lines: a kill during a write leaves part of a record there.

    A file without any complete line may also be a user's; it is moved to NAME.partial if it starts like a record.
    """
    with path.open("rb") as file:
        file.seek(num_bytes)
        rest = file.read(len(_RECORD_START))
    if rest and not num_bytes:
        if not _RECORD_START.startswith(rest):
            raise UserError(f"{path}: this is not a file of annotated records; give another file to write to")
        path.replace(unused_path(path.with_name(f"{path.name}.partial")))
    elif rest:
        with disk_errors(path):
            os.truncate(path, num_bytes)
            fsync_path(path)


def _write_lines(path: Path, mode: str, lines: Iterable[bytes]) -> None:
    with disk_errors(path):
        with path.open(mode) as file:
            file.writelines(lines)
        fsync_path(path)
