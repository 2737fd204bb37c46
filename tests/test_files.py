import errno
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from text2grad.errors import UserError
from text2grad.files import MANIFEST, append_json_lines, read_json_lines, recover_folder, replace_folder, replace_text


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

    with pytest.raises(UserError, match=r"disk is full while saving .*last; free space and continue with --resume"):
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


def test_a_really_full_disk_is_named(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").symlink_to("/dev/full")
    with pytest.raises(UserError, match="disk is full while saving"):
        append_json_lines(tmp_path / "metrics.jsonl", [{"step": 1}])


def test_a_file_that_may_not_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be written"):
        replace_text(Path("/sys/kernel/report.html"), "text")  # read-only even for root


def test_only_a_truncated_last_line_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    append_json_lines(path, [{"a": 1}, {"a": "ü\u2028"}])
    path.write_text(path.read_text() + '{"a": 3')
    assert list(read_json_lines(path)) == [(f"{path}:1", {"a": 1}), (f"{path}:2", {"a": "ü\u2028"})]
    path.write_text('{"a": 1}\n{"a"\n{"a": 2}\n')
    with pytest.raises(UserError, match=r"lines.jsonl:2: not valid JSON"):
        list(read_json_lines(path))


def test_nan_never_reaches_the_disk(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        append_json_lines(tmp_path / "x", [{"a": float("nan")}])


def test_replace_text_keeps_the_old_file_when_writing_fails(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    replace_text(path, json.dumps(1))
    with pytest.raises(UnicodeEncodeError):
        replace_text(path, "\ud800")
    assert path.read_text() == "1"
    assert [p.name for p in tmp_path.iterdir()] == ["config.yaml"]
