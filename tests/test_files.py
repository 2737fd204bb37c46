import errno
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from text2grad.errors import UserError
from text2grad.files import append_json_lines, read_json_lines, recover_folder, replace_folder, replace_text


def write(text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / "data").write_text(text)


def test_a_folder_is_replaced_as_a_whole(tmp_path: Path) -> None:
    folder = tmp_path / "last"
    replace_folder(folder, write("old"))
    replace_folder(folder, write("new"))
    assert (folder / "data").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["last"]


def test_a_full_disk_leaves_the_old_folder_and_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "last"
    replace_folder(folder, write("old"))

    def fill(new: Path) -> None:
        (new / "data").write_text("ne")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(UserError, match=r"disk is full while saving .*last; free space and continue with --resume"):
        replace_folder(folder, fill)
    assert (folder / "data").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["last"]


def test_a_kill_between_the_two_renames_is_undone(tmp_path: Path) -> None:
    folder = tmp_path / "last"
    replace_folder(folder, write("old"))
    folder.rename(tmp_path / "last.old")
    recover_folder(folder)
    assert (folder / "data").read_text() == "old"


def test_a_really_full_disk_is_named(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").symlink_to("/dev/full")
    with pytest.raises(UserError, match="disk is full while saving"):
        append_json_lines(tmp_path / "metrics.jsonl", [{"step": 1}])


def test_a_file_that_may_not_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be written"):
        replace_text(Path("/sys/kernel/report.html"), "text")  # read-only even for root


def test_only_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
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
