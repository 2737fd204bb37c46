"""The commands that start a sandboxed process, one per backend."""

from __future__ import annotations

import itertools
import os
import shutil
import sys
import sysconfig
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Literal

from text2grad.sandbox.result import ResourceLimits

Backend = Literal["bubblewrap", "namespaces", "unsafe"]

SCRATCH = "/scratch"
PYTHON = os.path.realpath(sys.executable)

_FOLDER = Path(__file__).parent
_LOAD_SUPERVISOR = """
import marshal, sys
launcher, modules, job = marshal.load(sys.stdin.buffer)
if launcher is not None:
    code, arguments = launcher
    names = {}
    exec(code, names)
    names["enter"](*arguments)
for name, code in modules:
    sys.modules[name] = module = type(sys)(name)
    exec(code, vars(module))
module.main(job)
"""
# The dynamic loader and the system's shared libraries; the time zones, which `zoneinfo` reads.
_SYSTEM = ("/usr/lib", "/usr/lib64", "/lib", "/lib64")
_SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/alternatives", "/usr/share/zoneinfo")
_DEVICES = ("null", "zero", "full", "random", "urandom")
_FIRST_UID = 2_000_000_000
_NOBODY = 65534
_NUM_UIDS = 1_000  # concurrent programs before two of them share a user, and with it the process limit
_uid_counter = itertools.count()


def build_command(backend: Backend, limits: ResourceLimits) -> list[str]:
    """Return the command that runs the supervisor inside `backend`; it reads its own code from standard input."""
    supervisor = [PYTHON, "-I", "-S", "-c", _LOAD_SUPERVISOR]
    if backend == "bubblewrap":
        return [*_bubblewrap(limits), *supervisor]
    return supervisor


def launcher(backend: Backend, limits: ResourceLimits) -> tuple[CodeType, tuple[str, int, int, list[str]]] | None:
    """Return the code and the arguments with which the supervisor's process isolates itself, where no other one does.

    They are not on its command line, which the program can read.
    """
    if backend != "namespaces":
        return None
    return _launcher_code(), (SCRATCH, limits.max_disk, limits.max_files, readable_paths())


@cache
def _launcher_code() -> CodeType:
    return compile((_FOLDER / "namespaces.py").read_text(encoding="utf-8"), "namespaces.py", "exec")


@cache
def supervisor_modules() -> list[tuple[str, CodeType]]:
    """Return the names and the code of the modules that run inside, the supervisor last."""
    names = ("processes", "memory", "supervisor")
    sources = {name: (_FOLDER / f"{name}.py").read_text(encoding="utf-8") for name in names}
    return [(f"{__package__}.{name}", compile(text, f"{name}.py", "exec")) for name, text in sources.items()]


def _bubblewrap(limits: ResourceLimits) -> list[str]:
    paths = readable_paths()
    arguments = [shutil.which("bwrap") or "bwrap", "--die-with-parent", "--as-pid-1", "--clearenv"]
    arguments += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    # The kernel does not count root's processes, so the supervisor runs the program as a user of its own.
    arguments += (
        ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
        if os.geteuid() == 0
        else ["--unshare-user", "--disable-userns"]
    )
    for parent in ["/dev", *_parents(paths)]:
        arguments += ["--perms", "0755", "--dir", parent]
    for path in paths:
        arguments += ["--symlink", os.readlink(path), path] if os.path.islink(path) else ["--ro-bind", path, path]
    for name in _DEVICES:
        arguments += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    arguments += ["--proc", "/proc", "--perms", "0777", "--size", str(limits.max_disk), "--tmpfs", SCRATCH]
    if "/tmp" not in _parents(paths):  # a virtual environment may be in /tmp; TMPDIR is the scratch folder anyway
        arguments += ["--symlink", SCRATCH, "/tmp"]
    return [*arguments, "--symlink", SCRATCH, "/dev/shm", "--remount-ro", "/", "--"]


def _parents(paths: list[str]) -> list[str]:
    """Return all parent folders of `paths` without duplicates, outer ones first."""
    parents = [str(parent) for path in paths for parent in reversed(Path(path).parents)]
    return [parent for parent in dict.fromkeys(parents) if parent != "/"]


@cache
def readable_paths() -> list[str]:
    """The interpreter, its libraries and packages, and the system's libraries: what a Python program needs to start.

    Never the folder that the interpreter is installed in, which may be somebody's home folder.
    """
    prefixes = dict.fromkeys((sys.base_prefix, str(Path(PYTHON).parents[1])))
    libraries = [os.path.join(prefix, name) for prefix in prefixes for name in dict.fromkeys(("lib", sys.platlibdir))]
    paths: list[str] = []
    for path in map(os.path.normpath, [*_SYSTEM, *_SYSTEM_FILES, *libraries, PYTHON, *package_paths()]):
        is_included = any(Path(path).is_relative_to(other) for other in paths)
        if os.path.lexists(path) and not is_included:
            paths.append(path)
    return paths


@cache
def package_paths() -> list[str]:
    """The folders of installed packages, without the user's site-packages."""
    paths = sysconfig.get_paths()
    return [path for path in dict.fromkeys((paths["purelib"], paths["platlib"])) if os.path.isdir(path)]


def allocate_uid() -> int | None:
    """Return an unused user id for a program started by root, or None for other users.

    It is "nobody" where the container that this runs in does not map the unused range.
    """
    if os.geteuid() != 0:
        return None
    ranges = [tuple(map(int, line.split())) for line in Path("/proc/self/uid_map").read_text().splitlines()]
    uid = _FIRST_UID + os.getpid() % 100_000 * _NUM_UIDS + next(_uid_counter) % _NUM_UIDS
    return uid if any(start <= uid < start + length for start, _, length in ranges) else _NOBODY
