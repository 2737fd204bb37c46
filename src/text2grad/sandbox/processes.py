"""What the processes of a program use, read from /proc. Runs inside the sandbox, beside the supervisor."""

from __future__ import annotations

import os
from itertools import islice

_CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
_PAGES = ("RssAnon:", "RssShmem:")  # pages of the program, not of files
_PAGE_TABLES = "VmPTE:"


def list_processes() -> dict[int, tuple[int, float, int]]:
    """Return (parent, CPU seconds with reaped children, bytes of address space) by process id.

    These are all descendants of this process; in a process namespace of its own, all other processes. One that has
    ended but is not reaped yet has no address space.
    """
    found: dict[int, tuple[int, float, int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as stat:
                    fields = stat.read().rpartition(b")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            found[int(name)] = (int(fields[1]), sum(map(int, fields[11:15])) / _CLOCK_TICKS, int(fields[20]))
    own = os.getpid()
    if own != 1:
        return _below(own, found)
    del found[1]
    return found


def _below(ancestor: int, processes: dict[int, tuple[int, float, int]]) -> dict[int, tuple[int, float, int]]:
    children: dict[int, list[int]] = {}
    for pid, (parent, _, _) in processes.items():
        children.setdefault(parent, []).append(pid)
    below = list(children.get(ancestor, []))
    for pid in below:
        below += children.get(pid, [])
    return {pid: processes[pid] for pid in below}


def measure_memory(pid: int) -> tuple[int, int]:
    """Return the bytes of a process's pages, those that it shares with another included, and of its page tables."""
    try:
        with open(f"/proc/{pid}/status", "rb") as status:
            lines = status.read().decode("utf-8", errors="replace").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0, 0
    pages = sum(int(line.split()[1]) for line in lines if line.startswith(_PAGES))
    tables = sum(int(line.split()[1]) for line in lines if line.startswith(_PAGE_TABLES))
    return pages * 1024, tables * 1024


def scratch_size(scratch: str) -> int:
    """Return the bytes that are used in the scratch folder, a file system of its own."""
    usage = os.statvfs(scratch)
    return (usage.f_blocks - usage.f_bfree) * usage.f_frsize


def num_files(scratch: str) -> int:
    """Return the number of files and folders in the scratch folder, deleted ones included that are still open."""
    usage = os.statvfs(scratch)
    return usage.f_files - usage.f_ffree


def num_file_locks(at_most: int) -> int:
    """Return the number of file locks, each some memory of the kernel; stops counting after `at_most`."""
    with open("/proc/locks", "rb") as locks:
        return sum(1 for _ in islice(locks, at_most))


def num_sockets() -> int:
    """Return the number of Unix sockets of this network namespace."""
    with open("/proc/net/unix", "rb") as sockets:
        return sum(1 for _ in sockets) - 1
