import errno
import json
import subprocess
import sys
from pathlib import Path

import pytest

from text2grad.errors import UserError
from text2grad.files import append_json_lines, disk_errors, exclusive_lock, read_json_lines, replace_text


def test_a_really_full_disk_is_named(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").symlink_to("/dev/full")
    with pytest.raises(UserError, match="disk is full while saving"):
        append_json_lines(tmp_path / "metrics.jsonl", [{"step": 1}])


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.EDQUOT, "Disk quota exceeded"), "disk is full while saving here"),
        (Exception("No space left on device (os error 28)"), "disk is full while saving here"),
        (RuntimeError("Error while serializing: I/O error: Permission denied (os error 13)"), "here cannot be written"),
    ],
)
def test_errors_of_libraries_are_recognised(error: Exception, said: str) -> None:
    with pytest.raises(UserError, match=said), disk_errors(Path("here")):
        raise error
    with pytest.raises(ValueError, match="other"), disk_errors(Path("here")):
        raise ValueError("other")


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


HOLDER = """
import sys
from pathlib import Path
from text2grad.files import exclusive_lock

with exclusive_lock(Path(sys.argv[1]), Path("run")):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_lock_names_its_holder_and_ends_with_its_process(tmp_path: Path) -> None:
    lock = tmp_path / ".lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        for _ in range(2):  # a refused process does not touch the lock
            with (
                pytest.raises(UserError, match=f"run is being written by process {holder.pid} on "),
                exclusive_lock(lock, tmp_path / "run"),
            ):
                pass
    finally:
        holder.kill()
        holder.communicate()
    assert lock.exists()
    with exclusive_lock(lock, tmp_path / "run"), pytest.raises(UserError), exclusive_lock(lock, tmp_path / "run"):
        pass
    assert not lock.exists()
