"""The files and runs that the studio offers: one that was named, or all of a folder; nothing outside of it."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from pathlib import Path

from text2grad.errors import UserError
from text2grad.schema import Strict
from text2grad.studio.project import Project
from text2grad.studio.source import is_run, is_source

_RUNS = "runs"
_OWN = (".studio.sqlite", ".studio.jsonl")


class SourceFile(Strict):
    """A file or run that can be opened. id: its name in addresses."""

    id: str
    name: str
    kind: str


class Workspace:
    """The sources of a folder, or a single one. Sources are opened when they are asked for, and stay open."""

    def __init__(self, path: Path, store: Path | None = None, columns: Mapping[str, str] | None = None) -> None:
        if not path.exists():
            raise UserError(f"{path}: no such file or folder; give a file of answers, a run, or a folder with files")
        self.root = path.resolve()
        self._store, self._columns = store, columns
        self._lock = threading.Lock()
        self._projects: dict[str, Project] = {}
        self.is_single = path.is_file() or is_run(path)
        if self.is_single:
            self.open(self.sources()[0].id)  # errors of the file are the user's first message
        elif store is not None:
            raise UserError(f"--store is for one file or run, but {path} is a folder; leave it out")

    @property
    def folder(self) -> Path:
        """Where new files go: the folder that was opened, or the one of the file."""
        return self.root.parent if self.root.is_file() else self.root

    def sources(self) -> list[SourceFile]:
        """Return what can be opened, by name. Links that lead out of the folder are left out."""
        if self.is_single:
            paths = [self.root]
        else:
            inside = [*self.root.iterdir(), *((self.root / _RUNS).iterdir() if (self.root / _RUNS).is_dir() else ())]
            paths = sorted(path for path in inside if self._is_offered(path))
        return [SourceFile(id=_identifier(p), name=self._name(p), kind="run" if is_run(p) else "file") for p in paths]

    def open(self, identifier: str) -> Project:
        """Return the source of this id; UserError where there is none, or where it cannot be read."""
        with self._lock:
            if identifier in self._projects:
                return self._projects[identifier]
            path = next((self._path(source.name) for source in self.sources() if source.id == identifier), None)
            if path is None:
                raise UserError(f'there is no file "{identifier}" in {self.root.name}')
            project = self._projects[identifier] = Project(path, self._store, self._columns)
            return project

    def close(self) -> None:
        """Close all stores."""
        for project in self._projects.values():
            project.close()

    def _is_offered(self, path: Path) -> bool:
        """Whether an entry of the folder can be opened; links in circles and what may not be read cannot."""
        if path.name.startswith(".") or path.name.endswith(_OWN) or not path.name.isprintable():
            return False
        try:
            return path.resolve().is_relative_to(self.root) and is_source(path)
        except (OSError, RuntimeError):
            return False

    def _name(self, path: Path) -> str:
        return path.name if self.is_single else str(path.relative_to(self.root))

    def _path(self, name: str) -> Path:
        return self.root if self.is_single else self.root / name


def _identifier(path: Path) -> str:
    return hashlib.blake2b(str(path).encode(errors="surrogateescape"), digest_size=6).hexdigest()
