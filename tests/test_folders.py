import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from text2grad.errors import UserError
from text2grad.files import replace_text
from text2grad.folders import MANIFEST, find_damage, recover_folder, replace_folder


def write(text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / "data").write_text(text)


def test_a_folder_is_replaced_as_a_whole(tmp_path: Path) -> None:
    folder = tmp_path / "last"
    replace_folder(folder, "model", write("old"))
    replace_folder(folder, "model", write("new"))
    assert (folder / "data").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["last"]


def test_a_full_disk_leaves_the_old_folder_and_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "last"
    replace_folder(folder, "model", write("old"))

    def fill(new: Path) -> None:
        (new / "data").write_text("ne")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(UserError, match=r"disk is full while saving .*last; free space and repeat the command"):
        replace_folder(folder, "model", fill)
    assert (folder / "data").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["last"]


def test_a_kill_between_the_two_renames_is_undone(tmp_path: Path) -> None:
    folder = tmp_path / "last"
    replace_folder(folder, "model", write("old"))
    folder.rename(tmp_path / ".last.text2grad-old")
    recover_folder(folder)
    assert (folder / "data").read_text() == "old"


def test_a_replacement_after_a_kill_between_the_two_renames_keeps_added_files(tmp_path: Path) -> None:
    folder = tmp_path / "last"
    replace_folder(folder, "model", write("old"))
    (folder / "notes.md").write_text("mine")
    folder.rename(tmp_path / ".last.text2grad-old")
    replace_folder(folder, "model", write("new"))
    assert sorted(path.name for path in folder.iterdir()) == ["data", "notes.md", MANIFEST]


def test_what_others_have_written_is_not_replaced(tmp_path: Path) -> None:
    folder, file, other = tmp_path / "mine", tmp_path / "file", tmp_path / "checkpoint"
    folder.mkdir()
    (folder / "thesis.tex").write_text("years of work")
    file.write_text("text")
    replace_folder(other, "checkpoint", write("step 9"))
    for path in (folder, file, other):
        with pytest.raises(UserError, match=f"{path.name} exists and is not a text2grad model; choose another folder"):
            replace_folder(path, "model", write("new"))
    assert (folder / "thesis.tex").read_text() == "years of work"
    assert file.read_text() == "text"
    assert (other / "data").read_text() == "step 9"
    assert len(list(tmp_path.iterdir())) == 3


def test_an_empty_folder_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    replace_folder(tmp_path / "new", "model", write("new"))
    assert (tmp_path / "new" / "data").read_text() == "new"


def test_files_added_to_a_folder_survive_its_replacement(tmp_path: Path) -> None:
    folder = tmp_path / "last"

    def two_files(new: Path) -> None:
        (new / "data").write_text("old")
        (new / "stale").write_text("old")

    replace_folder(folder, "model", two_files)
    (folder / "notes").mkdir()
    (folder / "notes" / "a.md").write_text("mine")
    for text in ("new", "newer"):
        replace_folder(folder, "model", write(text))
    assert {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()} == {"data", "notes/a.md", MANIFEST}
    assert (folder / "data").read_text() == "newer"


def test_neighbours_with_similar_names_are_left_alone(tmp_path: Path) -> None:
    for name in ("last.old", "last.new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "data").write_text("mine")
    (tmp_path / "card.md.new").write_text("mine")
    for text in ("old", "new"):
        replace_folder(tmp_path / "last", "model", write(text))
        replace_text(tmp_path / "card.md", text)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "card.md",
        "card.md.new",
        "last",
        "last.new",
        "last.old",
    ]
    assert {(tmp_path / name / "data").read_text() for name in ("last.old", "last.new")} == {"mine"}
    assert (tmp_path / "card.md.new").read_text() == "mine"


def test_a_link_is_followed_and_its_target_replaced(tmp_path: Path) -> None:
    replace_folder(tmp_path / "disk" / "model", "model", write("old"))
    (tmp_path / "link").symlink_to(tmp_path / "disk" / "model")
    replace_folder(tmp_path / "link", "model", write("new"))
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "disk" / "model" / "data").read_text() == "new"


def test_links_and_empty_folders_of_others_survive_a_replacement(tmp_path: Path) -> None:
    folder, data = tmp_path / "last", tmp_path / "data"
    data.mkdir()
    (data / "a.csv").write_text("mine")
    replace_folder(folder, "model", write("old"))
    (folder / "link").symlink_to(data)
    (folder / "broken").symlink_to(tmp_path / "nowhere")
    (folder / "todo" / "later").mkdir(parents=True)
    replace_folder(folder, "model", write("new"))
    assert os.readlink(folder / "link") == str(data)
    assert (folder / "broken").is_symlink()
    assert (folder / "todo" / "later").is_dir()
    assert (data / "a.csv").read_text() == "mine"
    assert find_damage(folder, "model") is None


def test_a_file_of_others_is_not_overwritten_by_a_new_one_of_the_same_name(tmp_path: Path) -> None:
    folder = tmp_path / "last"
    replace_folder(folder, "model", write("old"))
    (folder / "notes").write_text("mine")
    with pytest.raises(UserError, match="notes is not of text2grad and would be overwritten; move it away"):
        replace_folder(folder, "model", lambda new: (new / "notes").write_text("generated"))
    assert ((folder / "notes").read_text(), (folder / "data").read_text()) == ("mine", "old")
    assert [path.name for path in tmp_path.iterdir()] == ["last"]


def test_a_link_to_nowhere_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "later")
    replace_folder(tmp_path / "link", "model", write("new"))
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "later" / "data").read_text() == "new"


def test_the_replaced_folder_is_kept_as_the_previous_one(tmp_path: Path) -> None:
    last, previous = tmp_path / "last", tmp_path / "previous"
    for text in ("1", "2", "3"):
        replace_folder(last, "model", write(text), previous=previous)
    assert ((last / "data").read_text(), (previous / "data").read_text()) == ("3", "2")
    shutil.rmtree(last)  # as a kill between the renames leaves it
    replace_folder(last, "model", write("4"), previous=previous)
    assert ((last / "data").read_text(), (previous / "data").read_text()) == ("4", "2")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["last", "previous"]


def test_a_folder_of_others_does_not_become_the_previous_one(tmp_path: Path) -> None:
    (tmp_path / "previous").mkdir()
    (tmp_path / "previous" / "thesis.tex").write_text("years of work")
    with pytest.raises(UserError, match="previous exists and is not a text2grad model"):
        replace_folder(tmp_path / "last", "model", write("new"), previous=tmp_path / "previous")
    assert (tmp_path / "previous" / "thesis.tex").read_text() == "years of work"


def two_files(new: Path) -> None:
    (new / "data").write_text("weights")
    (new / "part").mkdir()
    (new / "part" / "more").write_text("more weights")
    (new / "README.md").write_text("card")


def checked(manifest: dict[str, dict[str, str | None]]) -> dict[str, str]:
    return {name: expected for name, expected in manifest["files"].items() if expected is not None}


@pytest.mark.parametrize("name", ["data", "part/more", MANIFEST])
def test_every_flipped_bit_is_found(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "last"
    replace_folder(folder, "model", two_files, editable=["README.md"])
    path = folder / name
    content = path.read_bytes()
    for position in range(len(content)):
        flipped = bytearray(content)
        flipped[position] ^= 1 << position % 8
        path.write_bytes(flipped)
        damage = find_damage(folder, "model")
        if damage is None:  # white space, or the name of an editable file
            assert checked(json.loads(flipped)) == checked(json.loads(content))
        else:
            assert str(folder) in damage
    path.write_bytes(content)
    assert find_damage(folder, "model") is None


def test_what_is_missing_truncated_or_of_another_kind_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "last"
    assert find_damage(folder, "model") == f"{folder} does not exist"
    replace_folder(folder, "model", two_files, editable=["README.md"])
    (folder / "README.md").write_text("edited")
    (folder / "notes").write_text("added")
    assert find_damage(folder, "model") is None
    (folder / "README.md").unlink()
    assert find_damage(folder, "model") is None
    assert find_damage(folder, "checkpoint") == f"{folder / MANIFEST} is missing or damaged"
    (folder / "data").write_text("weigh")
    assert find_damage(folder, "model") == f"{folder / 'data'} is damaged (its checksum is wrong)"
    (folder / "data").unlink()
    assert find_damage(folder, "model") == f"{folder / 'data'} is missing"
    (folder / MANIFEST).write_text(json.dumps({"kind": "model", "files": ["data"]}))
    assert find_damage(folder, "model") == f"{folder / MANIFEST} is of an earlier version of text2grad"
