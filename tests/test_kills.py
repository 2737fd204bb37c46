"""Runs that are killed at any moment, or fill the disk, end as if nothing had happened."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import text2grad

TESTS = Path(__file__).parent
NAMESPACE = ["unshare", "--map-root-user", "--mount"]


def can_mount() -> bool:
    command = [*NAMESPACE, "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", "/mnt"]
    return sys.platform == "linux" and not subprocess.run(command, capture_output=True, check=False).returncode


def run_script(name: str, *arguments: str | Path, prefix: list[str] | None = None) -> tuple[list[Any], str]:
    """Return the JSON lines that a script prints, and its errors."""
    path = os.pathsep.join([str(TESTS), str(Path(text2grad.__file__).parents[1])])
    done = subprocess.run(
        [*(prefix or []), sys.executable, TESTS / name, *arguments],
        env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def kill_and_resume(folder: Path, model: Path, kills: int, seed: int) -> None:
    reports, errors = run_script("kill_support.py", folder, model, str(kills), str(seed))
    assert len(reports) == kills, errors
    assert [(report["status"], report["different"]) for report in reports] == [(0, [])] * kills, errors
    assert sum(report["kills"] for report in reports) >= kills  # some twice; some runs end before their moment
    assert len({report["resumed_from"] for report in reports}) >= min(kills // 2, 5)


def test_killed_runs_resume_to_the_same_files(tiny_model: Path, tmp_path: Path) -> None:
    kill_and_resume(tmp_path, tiny_model, kills=4, seed=0)


@pytest.mark.slow
def test_forty_killed_runs_resume_to_the_same_files(tiny_model: Path, tmp_path: Path) -> None:
    kill_and_resume(tmp_path, tiny_model, kills=40, seed=1)


@pytest.mark.parametrize(
    "sizes", [[10, 60], pytest.param([2, 20, 30, 40, 50, 55, 65, 70], marks=pytest.mark.slow)], ids=["two", "eight"]
)
def test_runs_that_fill_the_disk_say_so_and_resume_to_the_same_files(
    tiny_model: Path, tmp_path: Path, sizes: list[int]
) -> None:
    if not can_mount():
        pytest.skip("needs a mount namespace")
    reports, errors = run_script("full_disk_support.py", tmp_path, tiny_model, *map(str, sizes), prefix=NAMESPACE)
    assert len(reports) == len(sizes), errors
    for report in reports:
        assert report["said"].startswith("the disk is full while saving ")
        assert report["said"].endswith("; free space and repeat the command, a training run with --resume")
        assert (report["status"], report["different"]) == ([0, 0], []), errors
