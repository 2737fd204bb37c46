"""Ways to shut a program in, and which of them works on this machine."""

from __future__ import annotations

import itertools
import marshal
import os
import shutil
import sys
import sysconfig
from functools import cache
from pathlib import Path
from typing import Literal

from text2grad.sandbox.outcome import Limits

Backend = Literal["bubblewrap", "namespaces", "unsafe"]

SCRATCH = "/scratch"
PYTHON = os.path.realpath(sys.executable)
LAUNCHER = str(Path(__file__).with_name("namespaces.py"))

_LOAD = "import marshal, sys; exec(marshal.loads(bytes.fromhex(sys.argv[2])))"
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/ld.so.cache", "/etc/alternatives")
_DEVICES = ("null", "zero", "full", "random", "urandom")
_FIRST_SPARE_UID = 2_000_000_000
_NOBODY = 65534
_SLOTS = 1_000  # programs side by side before two of them share a user, and with it a count of processes
_slots = itertools.count()


def command(backend: Backend, limits: Limits, status_fd: int) -> list[str]:
    """What to start so that the supervisor runs, shut in by `backend`."""
    supervisor = [PYTHON, "-I", "-S", "-c", _LOAD, str(status_fd), _supervisor()]
    if backend == "bubblewrap":
        return [*_bubblewrap(limits), *supervisor]
    if backend == "namespaces":
        return [PYTHON, "-I", "-S", LAUNCHER, SCRATCH, str(limits.disk), *readable(), "--", *supervisor]
    return supervisor


@cache
def _supervisor() -> str:
    """The program of the first process inside, compiled once for all of them."""
    source = Path(__file__).with_name("inside.py").read_text(encoding="utf-8")
    return marshal.dumps(compile(source, "inside.py", "exec")).hex()


def _bubblewrap(limits: Limits) -> list[str]:
    arguments = [shutil.which("bwrap") or "bwrap", "--die-with-parent", "--as-pid-1", "--clearenv"]
    arguments += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    # The superuser's processes are not counted, so the supervisor gives the program a user of its own.
    arguments += (
        ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
        if os.geteuid() == 0
        else ["--unshare-user", "--disable-userns"]
    )
    for parent in ["/dev", *_parents(readable())]:
        arguments += ["--perms", "0755", "--dir", parent]
    for path in readable():
        arguments += ["--symlink", os.readlink(path), path] if os.path.islink(path) else ["--ro-bind", path, path]
    for name in _DEVICES:
        arguments += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    arguments += ["--proc", "/proc", "--perms", "0777", "--size", str(limits.disk), "--tmpfs", SCRATCH]
    if "/tmp" not in _parents(
        readable()
    ):  # a virtual environment may live there; TMPDIR names the scratch folder anyway
        arguments += ["--symlink", SCRATCH, "/tmp"]
    return [*arguments, "--symlink", SCRATCH, "/dev/shm", "--remount-ro", "/", "--"]


def _parents(paths: list[str]) -> list[str]:
    """The folders that lead to `paths`, the outer ones first, each once."""
    found = [str(parent) for path in paths for parent in reversed(Path(path).parents)]
    return [parent for parent in dict.fromkeys(found) if parent != "/"]


@cache
def readable() -> list[str]:
    """The interpreter, its packages, and the system's libraries: what a Python program needs to start."""
    wanted = [*_SYSTEM, sys.base_prefix, os.path.dirname(os.path.dirname(PYTHON)), *packages()]
    found: list[str] = []
    for path in map(os.path.normpath, wanted):
        shown = any(Path(path).is_relative_to(other) for other in found)
        if path != "/" and os.path.lexists(path) and not shown:
            found.append(path)
    return found


@cache
def packages() -> list[str]:
    """The folders that this interpreter imports installed packages from, the user's own folder left out."""
    paths = sysconfig.get_paths()
    return [path for path in dict.fromkeys((paths["purelib"], paths["platlib"])) if os.path.isdir(path)]


def spare_uid() -> int | None:
    """A user that nobody else is, for a program started by the superuser; None for an ordinary user.

    Where the container that this runs in has no such user, it is "nobody".
    """
    if os.geteuid() != 0:
        return None
    ranges = [tuple(map(int, line.split())) for line in Path("/proc/self/uid_map").read_text().splitlines()]
    wanted = _FIRST_SPARE_UID + os.getpid() % 100_000 * _SLOTS + next(_slots) % _SLOTS
    return wanted if any(start <= wanted < start + length for start, _, length in ranges) else _NOBODY
