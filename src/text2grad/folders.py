"""Folders that are replaced as a whole, carry checksums, and never cost anybody else's files."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

from text2grad.errors import UserError
from text2grad.files import checksum, disk_errors, exclusive_lock, fsync_path

MANIFEST = "text2grad_files.json"  # marks a folder that `replace_folder` wrote: its kind, and its files' SHA-256


def replace_folder(
    folder: Path,
    kind: str,
    fill: Callable[[Path], object],
    editable: Collection[str] = (),
    previous: Path | None = None,
) -> None:
    """Build a folder in a hidden sibling, then swap it in: at every moment the old or the new one is complete.

    Only a folder of the same kind that this function wrote is replaced, see `check_replaceable`; what others have added
    to it is copied over.

    editable: names of files that may change afterwards; they have no checksum. previous: where to keep the replaced
    folder; what this function kept there before is removed. After a kill between the renames only `previous` exists;
    without `previous`, `recover_folder` undoes such a kill.
    """
    folder, previous = folder.resolve(), previous.resolve() if previous else None
    if previous is None:
        recover_folder(folder)
    for path in (folder, *([previous] if previous else [])):
        check_replaceable(path, kind)
    new, old = _sibling(folder, "new"), _sibling(folder, "old")
    with exclusive_lock(_sibling(folder, "lock"), folder), disk_errors(folder):
        shutil.rmtree(new, ignore_errors=True)  # of a killed attempt
        new.mkdir(parents=True)
        try:
            fill(new)
            _write_manifest(new, kind, editable)
            _copy_foreign(folder, new)
            for path in [*new.rglob("*"), new]:
                if not path.is_symlink():
                    fsync_path(path)
        except BaseException:
            shutil.rmtree(new, ignore_errors=True)
            raise
        shutil.rmtree(old, ignore_errors=True)
        if folder.exists():
            if previous is not None and previous.exists():
                previous.rename(old)
            folder.rename(previous or old)
        new.rename(folder)
        fsync_path(folder.parent)
        shutil.rmtree(old, ignore_errors=True)


def check_replaceable(folder: Path, kind: str) -> None:
    """Reject a path with contents that `replace_folder` did not write for the same kind."""
    if folder.is_dir() and (not any(folder.iterdir()) or _read_manifest(folder).get("kind") == kind):
        return
    if os.path.lexists(folder):
        raise UserError(f"{folder} exists and is not a text2grad {kind}; choose another folder, or move it away")


def recover_folder(folder: Path) -> None:
    """Undo a `replace_folder` without `previous` that was killed between its two renames."""
    folder = folder.resolve()
    old = _sibling(folder, "old")
    if old.exists() and not folder.exists():
        old.rename(folder)


def remove_leftovers(folder: Path) -> None:
    """Remove what a killed `replace_folder` has left beside an intact folder, or beside its `previous`."""
    for state in ("new", "old"):
        shutil.rmtree(_sibling(folder.resolve(), state), ignore_errors=True)


def find_damage(folder: Path, kind: str) -> str | None:
    """Return how a folder differs from what `replace_folder` wrote, as the start of a sentence; None where it does not.

    Files that others have added, and editable files, do not count.
    """
    if not folder.is_dir():
        return f"{folder} does not exist"
    manifest = _read_manifest(folder)
    checksums = manifest.get("files")
    if manifest.get("kind") != kind or not isinstance(checksums, dict):
        earlier = isinstance(checksums, list)
        return f"{folder / MANIFEST} {'is of an earlier version of text2grad' if earlier else 'is missing or damaged'}"
    for name, expected in checksums.items():
        path = folder / name
        if expected is None:
            continue
        if not path.is_file():
            return f"{path} is missing"
        if checksum(path) != expected:
            return f"{path} is damaged (its checksum is wrong)"
    return None


def _sibling(folder: Path, state: str) -> Path:
    """Return the hidden sibling of this state; nothing else has names like these."""
    return folder.with_name(f".{folder.name}.text2grad-{state}")


def _write_manifest(folder: Path, kind: str, editable: Collection[str]) -> None:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    names = {str(path.relative_to(folder)): path for path in files}
    checksums = {name: None if name in editable else checksum(path) for name, path in names.items()}
    (folder / MANIFEST).write_text(json.dumps({"kind": kind, "files": checksums}, indent=1), encoding="utf-8")


def _read_manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return {}
    return manifest if isinstance(manifest, dict) else {}


def _copy_foreign(folder: Path, new: Path) -> None:
    """Copy what others have added to `folder` to the same place in `new`; refuse where that was written anew."""
    for path in _foreign(folder):
        copy = new / path.relative_to(folder)
        if path.is_dir() and not path.is_symlink():
            copy.mkdir(parents=True, exist_ok=True)
            continue
        if os.path.lexists(copy):
            raise UserError(f"{path} is not of text2grad and would be overwritten; move it away")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy, follow_symlinks=False)


def _foreign(folder: Path) -> Iterator[Path]:
    """Yield files, links and empty folders that are not in the folder's manifest."""
    own = {MANIFEST, *_read_manifest(folder).get("files", ())}
    for root, folders, files in os.walk(folder):
        links = [name for name in folders if Path(root, name).is_symlink()]
        for name in [*files, *links]:
            if str((path := Path(root, name)).relative_to(folder)) not in own:
                yield path
        if not folders and not files and Path(root) != folder:
            yield Path(root)
