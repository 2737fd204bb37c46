"""Enters namespaces: a root with only the given paths, no network, no other processes. Requires Linux 5.14.

It runs in the interpreter that becomes the supervisor, sent to it as code, and imports little, because that would take
longer than its work. Users other than root get a user namespace.
"""

from __future__ import annotations

import ctypes
import os
import struct

_NEWNS, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = (1 << bit for bit in (17, 26, 27, 28, 29, 30))
_NOSUID, _NODEV, _BIND, _REC, _PRIVATE = 2, 4, 1 << 12, 1 << 14, 1 << 18
_DETACH = 2
_MOUNT_SETATTR, _PIVOT_ROOT = 442, {"x86_64": 155, "aarch64": 41}
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_ATTR_READ_ONLY, _ATTR_NOSUID, _ATTR_NODEV = 1, 2, 4
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
_SIGKILL = 9
_CAPABILITY_VERSION = 0x20080522
_DEVICES = ("null", "zero", "full", "random", "urandom")
_libc = ctypes.CDLL(None, use_errno=True)


class _MountAttributes(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("attr_set", "attr_clr", "propagation", "userns_fd"))


def enter(scratch: str, disk: int, files: int, readable: list[str]) -> None:
    """Return in a new process, the first one of the namespaces; this one exits with its exit code.

    scratch: a new folder of `disk` bytes and `files` files. readable: paths that are seen, read-only.
    """
    _enter_namespaces()
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        os._exit(max(0, os.waitstatus_to_exitcode(status)))
    _call("prctl", _PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)
    _build_root(scratch, disk, files, readable)
    _call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if os.geteuid() != 0:  # root still has to change to the program's user
        _call("capset", struct.pack("II", _CAPABILITY_VERSION, 0), bytes(24))


def _enter_namespaces() -> None:
    uid, gid = os.geteuid(), os.getegid()
    flags = _NEWNS | _NEWUTS | _NEWIPC | _NEWPID | _NEWNET
    _call("unshare", flags if uid == 0 else flags | _NEWUSER)
    if uid != 0:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{uid} {uid} 1")
        _write("/proc/self/gid_map", f"{gid} {gid} 1")
        _write("/proc/sys/user/max_user_namespaces", "0")  # no nested ones for the program


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)


def _build_root(scratch: str, disk: int, files: int, readable: list[str]) -> None:
    """Build the new root under /new while the old one is at /old, then unmount the old one."""
    _mount("none", "/", "", _REC | _PRIVATE)
    _mount("tmpfs", "/tmp", "tmpfs", _NOSUID | _NODEV, "mode=755,size=1m")
    os.chdir("/tmp")
    os.mkdir("new")
    os.mkdir("old")
    _mount("/tmp/new", "/tmp/new", "", _BIND)
    _pivot_root("/tmp", "/tmp/old")
    os.chdir("/new")
    for path in readable:
        _bind_read_only(path)
    for name in _DEVICES:
        _bind(f"/old/dev/{name}", f"/new/dev/{name}")
    os.mkdir("/new/proc")
    _mount("proc", "/new/proc", "proc", _NOSUID | _NODEV)
    os.mkdir(f"/new{scratch}")
    _mount("tmpfs", f"/new{scratch}", "tmpfs", _NOSUID | _NODEV, f"mode=777,size={disk},nr_inodes={files}")
    if not os.path.lexists("/new/tmp"):  # a virtual environment may be in /tmp; TMPDIR is the scratch folder anyway
        os.symlink(scratch, "/new/tmp")
    os.symlink(scratch, "/new/dev/shm")
    _pivot_root(".", ".")
    _call("umount2", b".", _DETACH)
    os.chdir("/")
    _set_mount_attributes("/", 0, _ATTR_READ_ONLY)


def _bind_read_only(path: str) -> None:
    """Make `path` of the old root readable in the new one; symbolic links are copied."""
    old, new = f"/old{path}", f"/new{path}"
    if os.path.islink(old):
        os.makedirs(os.path.dirname(new), exist_ok=True)
        os.symlink(os.readlink(old), new)
    else:
        _bind(old, new)
        _set_mount_attributes(new, _AT_RECURSIVE, _ATTR_READ_ONLY | _ATTR_NOSUID | _ATTR_NODEV)


def _bind(source: str, target: str) -> None:
    folder = os.path.isdir(source)
    os.makedirs(target if folder else os.path.dirname(target), exist_ok=True)
    if not folder:
        _write(target, "")
    _mount(source, target, "", _BIND | _REC)


def _mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    _call("mount", source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode())


def _pivot_root(new: str, old: str) -> None:
    _call("syscall", ctypes.c_long(_PIVOT_ROOT[os.uname().machine]), new.encode(), old.encode())


def _set_mount_attributes(path: str, flags: int, attributes: int) -> None:
    value = _MountAttributes(attr_set=attributes)
    size = ctypes.c_size_t(ctypes.sizeof(value))
    number = ctypes.c_long(_MOUNT_SETATTR)
    _call("syscall", number, _AT_FDCWD, path.encode(), ctypes.c_uint(flags), ctypes.byref(value), size)


def _call(name: str, *arguments: object) -> None:
    if getattr(_libc, name)(*arguments) == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}{arguments}: {os.strerror(number)}")
