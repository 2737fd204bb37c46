"""Annotations on disk: versions, undo, several threads, and files that are not stores."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from text2grad.errors import UserError
from text2grad.schema import Example, Feedback, Span
from text2grad.studio.store import ConflictError, Store

EXAMPLE = Example(id="1", prompt="Who?", completion="Ada did it.")


def say(text: str, annotator: str = "Mia") -> Feedback:
    return Feedback(critic=f"human:{annotator}", critique=text, spans=[Span(start=0, end=3, label="poor")])


def save(store: Store, text: str, version: int, annotator: str = "Mia", key: str = "k") -> int:
    return store.save(key, EXAMPLE, annotator, version, "done", say(text, annotator)).version


@pytest.fixture
def store(tmp_path: Path):
    store = Store(tmp_path / "a.sqlite")
    yield store
    store.close()


def test_what_is_saved_is_there_in_another_process(store: Store) -> None:
    save(store, "One.", 0)
    other = Store(store.path)
    assert other.get("k", "Mia").feedback == say("One.")
    assert other.examples() == {"k": EXAMPLE}
    other.close()


def test_a_version_is_written_once(store: Store) -> None:
    save(store, "One.", 0)
    with pytest.raises(ConflictError) as conflict:
        save(store, "Other.", 0)
    assert conflict.value.current.feedback.critique == "One."
    assert save(store, "One.", 0) == 1  # the same again is no conflict
    assert save(store, "Two.", 1) == 2


def test_annotators_do_not_mix(store: Store) -> None:
    save(store, "Mine.", 0)
    save(store, "His.", 0, "Tom")
    assert [(one.annotator, one.feedback.critique) for one in store.annotations("k")["k"]] == [
        ("Mia", "Mine."),
        ("Tom", "His."),
    ]
    assert store.annotators() == {"Mia": 1, "Tom": 1}
    assert store.heads("Mia")["k"].marks == 1


def test_undo_after_undo_and_a_new_edit(store: Store) -> None:
    save(store, "One.", 0)
    save(store, "Two.", 1)
    assert store.undo("k", "Mia", 2).feedback.critique == "One."
    save(store, "Three.", 3)
    assert store.undo("k", "Mia", 4).feedback.critique == "One."
    assert store.undo("k", "Mia", 5).feedback.critique == ""
    last = store.undo("k", "Mia", 6)
    assert (last.version, last.can_undo) == (6, False)
    with pytest.raises(ConflictError):
        store.undo("k", "Mia", 2)


def test_many_writers_lose_nothing(store: Store) -> None:
    def work(name: str) -> None:
        for version in range(20):
            save(store, f"{name} {version}", version, name)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, [f"a{i}" for i in range(8)]))
    for i in range(8):
        last = store.get("k", f"a{i}")
        assert (last.version, last.feedback.critique) == (20, f"a{i} 19")


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "text.sqlite"
    path.write_text("no database, but long enough to look like one " * 50)
    with pytest.raises(UserError, match="not a store of the studio"):
        Store(path)
    newer = tmp_path / "newer.sqlite"
    connection = sqlite3.connect(newer)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(UserError, match="another version"):
        Store(newer)


def test_a_store_with_damaged_pages_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    store = Store(path)
    for i in range(200):
        save(store, "words " * 50, 0, key=str(i))
    store.close()
    data = bytearray(path.read_bytes())
    data[4096 * 3 :] = b"\x5a" * (len(data) - 4096 * 3)
    path.write_bytes(data)
    with pytest.raises(UserError, match="not a store of the studio"):
        Store(path)
