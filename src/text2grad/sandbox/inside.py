"""The first process inside a sandbox: it starts the program, holds it to its limits and says how it ended.

It runs as a script of its own, `python -I -S ... STATUS_FD`, and needs nothing but the standard library. On its
standard input it gets the job, marshalled behind its length; the other end stays open for as long as the program is
wanted. What happened goes to STATUS_FD, marshalled too: both ends are the same interpreter, and json, typing and the
like would double the time that this takes to start. When this process ends, the kernel ends whatever the program has
left behind, because it is the first process of its namespace; where there is no namespace, it does that itself.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import marshal
import os
import resource
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TICK_MS = 40
_PR_SET_NOT_DUMPABLE, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = (4, 0), (36, 1), (38, 1)
_CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
_SIGINT, _SIGKILL = 2, 9  # the module `signal` would take longer to import than all the others together


def main(status_fd: int) -> None:
    _signal.signal(_SIGINT, _signal.SIG_DFL)  # the kernel then keeps it from a first process, as all but its own
    os.set_inheritable(status_fd, False)
    job = _read_job()
    if os.getpid() != 1:
        _prctl(_PR_SET_CHILD_SUBREAPER)
        _prctl(_PR_SET_NO_NEW_PRIVS)
    if job["uid"] is None:
        _prctl(_PR_SET_NOT_DUMPABLE)  # a program of the same user must not reach into this process through /proc
    _write_files(job["scratch"], job["files"])
    child = _start(job, status_fd)
    try:
        status = _supervise(child, job["limits"])
    finally:
        _kill_the_rest()
    os.write(status_fd, marshal.dumps(status))
    os._exit(0)  # nothing is left that the interpreter would have to tidy up


def _read_job() -> dict[str, Any]:
    """The job, and not a byte beyond: the rest of the pipe only says that somebody is there."""
    message: dict[str, Any] = marshal.loads(_read(int.from_bytes(_read(8), "big")))
    return message


def _read(size: int) -> bytes:
    parts: list[bytes] = []
    while size > 0:
        part = os.read(0, min(size, 1 << 16))
        if not part:
            sys.exit("the job was cut off")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _write_files(scratch: str, files: dict[str, str]) -> None:
    os.chdir(scratch)
    for name, text in files.items():
        if os.path.dirname(name):
            os.makedirs(os.path.dirname(name), exist_ok=True)
        with open(name, "w", encoding="utf-8", errors="surrogatepass", newline="") as out:
            out.write(text)


def _start(job: dict[str, Any], status_fd: int) -> int:
    child = os.fork()
    if child:
        return child
    try:
        stdin = os.memfd_create("stdin")
        os.write(stdin, job["stdin"].encode("utf-8", errors="surrogatepass"))
        os.lseek(stdin, 0, os.SEEK_SET)
        os.dup2(stdin, 0)
        os.close(stdin)
        os.setsid()
        _lose_privileges(job["uid"])
        _set_limits(job["limits"])
        os.execve(job["argv"][0], job["argv"], job["env"])
    except (OSError, ValueError) as error:
        os.write(status_fd, marshal.dumps({"failed": str(error)}))
    os._exit(127)


def _lose_privileges(uid: int | None) -> None:
    """The kernel does not count the processes of the superuser: nothing would stop a fork bomb."""
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)


def _set_limits(limits: dict[str, Any]) -> None:
    cpu = int(limits["cpu"]) + 1
    bounds = {
        resource.RLIMIT_CPU: cpu,
        resource.RLIMIT_AS: limits["memory"],
        resource.RLIMIT_FSIZE: limits["file_size"],
        resource.RLIMIT_NOFILE: 64,
        resource.RLIMIT_CORE: 0,
    }
    if limits["processes"] is not None:
        bounds[resource.RLIMIT_NPROC] = limits["processes"]
    for kind, bound in bounds.items():
        hard = resource.getrlimit(kind)[1]
        wanted = bound if hard == resource.RLIM_INFINITY else min(bound, hard)
        resource.setrlimit(kind, (wanted, wanted))


def _supervise(child: int, limits: dict[str, Any]) -> dict[str, Any]:
    """Wait until the program ends, hits a limit, or nobody waits for it any more."""
    deadline = time.monotonic() + limits["wall"]
    watched = select.poll()
    watched.register(0, select.POLLHUP)
    watched.register(os.pidfd_open(child), select.POLLIN)
    cpu, memory, over = 0.0, 0, None
    while over is None:
        ready = watched.poll(min(_TICK_MS, max(0, int(1000 * (deadline - time.monotonic())) + 1)))
        code = _reap(child)
        if code is not None:
            ending = "exit" if code >= 0 else "signal"
            return {"ending": ending, "code": abs(code), "cpu": max(cpu, _cpu_of_reaped()), "memory": memory}
        if any(fd == 0 for fd, _ in ready):
            sys.exit("nobody waits for the result")
        cpu, resident = _usage()
        memory = max(memory, resident)
        over = _exceeded(cpu, resident, deadline, limits)
    return {"ending": over, "code": None, "cpu": cpu, "memory": memory}


def _exceeded(cpu: float, resident: int, deadline: float, limits: dict[str, Any]) -> str | None:
    if resident > limits["memory"]:
        return "memory"
    if cpu > limits["cpu"]:
        return "cpu"
    return "time" if time.monotonic() >= deadline else None


def _reap(child: int) -> int | None:
    """The child's exit code, or minus its signal; None while it runs. Orphans are buried on the way."""
    found = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == child:
            found = os.waitstatus_to_exitcode(status)
        if pid == 0:
            return found


def _cpu_of_reaped() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _usage() -> tuple[float, int]:
    """CPU seconds and bytes of resident memory, of all processes together."""
    cpu, memory = _cpu_of_reaped(), 0
    for pid in _descendants():
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
                times = stat.read().rpartition(")")[2].split()[11:15]
            with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as status:
                resident = [line.split()[1] for line in status if line.startswith(("RssAnon:", "RssShmem:"))]
        except (FileNotFoundError, ProcessLookupError):
            continue
        cpu += sum(map(int, times)) / _CLOCK_TICKS
        memory += sum(map(int, resident)) * 1024
    return cpu, memory


def _descendants() -> list[int]:
    """The processes that come from this one; in a namespace of its own, those are all the others."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as stat:
                    parent = int(stat.read().rpartition(")")[2].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
            children.setdefault(parent, []).append(int(name))
    if os.getpid() == 1:
        return [pid for family in children.values() for pid in family if pid != 1]
    found = list(children.get(os.getpid(), []))
    for pid in found:
        found += children.get(pid, [])
    return found


def _kill_the_rest() -> None:
    """Where this process is not the first of a namespace, nobody else does it."""
    if os.getpid() == 1:
        return
    while remaining := _descendants():
        for pid in remaining:
            try:
                os.kill(pid, _SIGKILL)
            except ProcessLookupError:
                continue
        _reap(0)
        time.sleep(0.001)


def _prctl(setting: tuple[int, int]) -> None:
    import ctypes  # only where it is needed: it takes a quarter of this process's time

    if ctypes.CDLL(None, use_errno=True).prctl(*setting, 0, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl {setting}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
