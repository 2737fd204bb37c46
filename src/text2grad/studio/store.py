"""Annotations in SQLite: every edit is one transaction, and nothing that was saved is ever overwritten.

`revisions` only grows. `heads` points at the current revision of each annotator on each answer. A revision's parent is
the one that undo goes back to.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from text2grad.errors import UserError
from text2grad.files import disk_errors
from text2grad.schema import Example, Feedback, Strict

Status = Literal["open", "done", "skipped"]
_FORMAT = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS records (key TEXT PRIMARY KEY, example TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS revisions (
  key TEXT NOT NULL, annotator TEXT NOT NULL, version INTEGER NOT NULL, parent INTEGER NOT NULL,
  status TEXT NOT NULL, feedback TEXT NOT NULL, saved_at REAL NOT NULL, PRIMARY KEY (key, annotator, version)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS heads (
  key TEXT NOT NULL, annotator TEXT NOT NULL, version INTEGER NOT NULL, status TEXT NOT NULL, marks INTEGER NOT NULL,
  PRIMARY KEY (annotator, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS predictions (
  key TEXT NOT NULL, critic TEXT NOT NULL, feedback TEXT NOT NULL, PRIMARY KEY (key, critic)
) STRICT, WITHOUT ROWID;
"""
_CURRENT = "SELECT r.* FROM heads h JOIN revisions r USING (key, annotator, version)"


class Annotation(Strict):
    """What an annotator says about an answer. version: 0 where nothing was saved yet. can_undo: whether there is an
    earlier revision.
    """

    annotator: str
    version: int = 0
    status: Status = "open"
    feedback: Feedback
    can_undo: bool = False


class Head(Strict):
    """The state of an annotator's work on an answer."""

    status: Status
    marks: int


class ConflictError(Exception):
    """Somebody saved a newer version meanwhile."""

    def __init__(self, current: Annotation) -> None:
        super().__init__(f"version {current.version} was saved meanwhile")
        self.current = current


class Store:
    """The annotations of one source. May be used from several threads; they take turns."""

    def __init__(self, path: Path) -> None:
        self.path, self._lock = path, threading.Lock()
        with disk_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.open("a").close()
        try:
            self._connection = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
            self._connection.row_factory = sqlite3.Row
            for setting in ("journal_mode = WAL", "synchronous = FULL", "busy_timeout = 30000"):
                self._connection.execute(f"PRAGMA {setting}")
            (found,) = self._connection.execute("PRAGMA user_version").fetchone()
            (checked,) = self._connection.execute("PRAGMA quick_check(1)").fetchone()
            if checked != "ok":
                raise sqlite3.DatabaseError(f"damaged: {checked}")
            self._connection.executescript(_SCHEMA)
        except sqlite3.DatabaseError as error:
            raise UserError(f"{path}: not a store of the studio ({error}); move it away, or give --store") from error
        if found not in (0, _FORMAT):
            raise UserError(f"{path}: written by another version of the studio; move it away, or give --store")
        self._connection.execute(f"PRAGMA user_version = {_FORMAT}")

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            self._connection.close()

    def get(self, key: str, annotator: str) -> Annotation:
        """Return what an annotator has saved about an answer, or an empty annotation."""
        with self._lock:
            return self._get(key, annotator)

    def save(
        self, key: str, example: Example, annotator: str, version: int, status: Status, feedback: Feedback
    ) -> Annotation:
        """Save a new version; it is on the disk when this returns.

        version: the one that the annotator has seen. ConflictError where it is not the current one, unless the current
        one says the same.
        """
        content = feedback.model_dump_json(exclude_defaults=True)
        with self._transaction():
            current = self._get(key, annotator)
            if current.version and (current.status, current.feedback) == (status, feedback):
                return current
            if current.version != version:
                raise ConflictError(current)
            without = example.model_copy(update={"feedback": None}).model_dump_json(exclude_defaults=True)
            self._connection.execute("INSERT OR IGNORE INTO records VALUES (?, ?)", (key, without))
            self._add_revision(key, annotator, version + 1, version, status, content)
            return self._get(key, annotator)

    def undo(self, key: str, annotator: str, version: int) -> Annotation:
        """Go back to the revision before, as a new version; the undone one stays in the history."""
        with self._transaction():
            current = self._get(key, annotator)
            if current.version != version:
                raise ConflictError(current)
            if not current.can_undo:
                return current
            row = self._revision(key, annotator, self._revision(key, annotator, version)["parent"])
            if row is None:  # the state before the first edit
                empty = _empty(annotator)
                self._add_revision(key, annotator, version + 1, -1, "open", empty.feedback.model_dump_json())
            else:
                self._add_revision(key, annotator, version + 1, row["parent"], row["status"], row["feedback"])
            return self._get(key, annotator)

    def heads(self, annotator: str) -> dict[str, Head]:
        """Return the state of an annotator's work by answer."""
        with self._lock:
            rows = self._connection.execute("SELECT key, status, marks FROM heads WHERE annotator = ?", (annotator,))
            return {row["key"]: Head(status=row["status"], marks=row["marks"]) for row in rows}

    def annotations(self, key: str | None = None) -> dict[str, list[Annotation]]:
        """Return all annotations by answer, or those of one answer, in the order of the annotators' names."""
        found: dict[str, list[Annotation]] = defaultdict(list)
        where, values = ("WHERE h.key = ?", (key,)) if key else ("", ())
        with self._lock:
            for row in self._connection.execute(f"{_CURRENT} {where} ORDER BY h.annotator", values).fetchall():
                found[row["key"]].append(_annotation(row))
        return dict(found)

    def annotators(self) -> dict[str, int]:
        """Return how many answers each annotator has finished."""
        query = "SELECT annotator, SUM(status = 'done') AS done FROM heads GROUP BY annotator ORDER BY annotator"
        with self._lock:
            return {row["annotator"]: row["done"] for row in self._connection.execute(query)}

    def examples(self) -> dict[str, Example]:
        """Return all answers that were annotated, also those that the source no longer has."""
        with self._lock:
            rows = self._connection.execute("SELECT key, example FROM records").fetchall()
        return {row["key"]: Example.model_validate_json(row["example"]) for row in rows}

    def add_prediction(self, key: str, critic: str, feedback: Feedback) -> None:
        """Save the feedback of a critic, so that it is asked once."""
        with self._transaction():
            self._connection.execute(
                "INSERT OR REPLACE INTO predictions VALUES (?, ?, ?)",
                (key, critic, feedback.model_dump_json(exclude_defaults=True)),
            )

    def predictions(self, key: str | None = None) -> dict[str, dict[str, Feedback]]:
        """Return the feedback of critics by answer and critic."""
        found: dict[str, dict[str, Feedback]] = defaultdict(dict)
        where, values = ("WHERE key = ?", (key,)) if key else ("", ())
        with self._lock:
            for row in self._connection.execute(f"SELECT * FROM predictions {where}", values).fetchall():
                found[row["key"]][row["critic"]] = Feedback.model_validate_json(row["feedback"])
        return dict(found)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock, disk_errors(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def _get(self, key: str, annotator: str) -> Annotation:
        row = self._connection.execute(f"{_CURRENT} WHERE h.key = ? AND h.annotator = ?", (key, annotator)).fetchone()
        return _empty(annotator) if row is None else _annotation(row)

    def _revision(self, key: str, annotator: str, version: int) -> sqlite3.Row:
        query = "SELECT * FROM revisions WHERE key = ? AND annotator = ? AND version = ?"
        row: sqlite3.Row = self._connection.execute(query, (key, annotator, version)).fetchone()
        return row

    def _add_revision(self, key: str, annotator: str, version: int, parent: int, status: str, feedback: str) -> None:
        said = Feedback.model_validate_json(feedback)
        self._connection.execute(
            "INSERT INTO revisions VALUES (?, ?, ?, ?, ?, ?, ?)",
            (key, annotator, version, parent, status, feedback, time.time()),
        )
        self._connection.execute(
            "INSERT OR REPLACE INTO heads VALUES (?, ?, ?, ?, ?)",
            (key, annotator, version, status, len(said.spans) + len(said.omissions)),
        )


def critic_name(annotator: str) -> str:
    """Return the name of an annotator as a critic in feedback."""
    return f"human:{annotator}"


def _empty(annotator: str) -> Annotation:
    return Annotation(annotator=annotator, feedback=Feedback(critic=critic_name(annotator)))


def _annotation(row: sqlite3.Row) -> Annotation:
    return Annotation(
        annotator=row["annotator"],
        version=row["version"],
        status=row["status"],
        feedback=Feedback.model_validate_json(row["feedback"]),
        can_undo=row["parent"] >= 0,
    )
