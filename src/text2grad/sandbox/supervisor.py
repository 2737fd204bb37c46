"""The first process inside a sandbox: starts the program, enforces its limits and reports how it terminated.

It runs as a script, `python -I -S ... STATUS_FD`, and needs only the standard library. Its standard input carries the
job, marshalled, and stays open until the result is no longer needed. The report goes to STATUS_FD, also marshalled:
both ends are the same interpreter, and importing json or typing would double the start-up time. When this process
exits, the kernel kills whatever the program has left behind, because it is the first process of its namespace; without
a namespace it kills them itself.
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
_SIGINT, _SIGKILL = 2, 9  # importing `signal` takes longer than all other imports together


def main(status_fd: int) -> None:
    """Run the job from standard input, report to `status_fd` and exit."""
    _signal.signal(_SIGINT, _signal.SIG_DFL)  # the kernel then does not deliver it to the first process
    os.set_inheritable(status_fd, False)
    job: dict[str, Any] = marshal.load(sys.stdin.buffer)
    if os.getpid() != 1:
        _prctl(_PR_SET_CHILD_SUBREAPER)
        _prctl(_PR_SET_NO_NEW_PRIVS)
    if job["uid"] is None:
        _prctl(_PR_SET_NOT_DUMPABLE)  # a program of the same user must not access this process through /proc
    _write_files(job["scratch"], job["files"])
    child = _start_program(job, status_fd)
    try:
        report = _supervise(child, job["limits"])
    finally:
        _kill_descendants()
    os.write(status_fd, marshal.dumps(report))
    os._exit(0)  # skips the interpreter's clean-up


def _write_files(scratch: str, files: dict[str, str]) -> None:
    os.chdir(scratch)
    for name, text in files.items():
        os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
        with open(name, "w", encoding="utf-8", errors="surrogatepass", newline="") as out:
            out.write(text)


def _start_program(job: dict[str, Any], status_fd: int) -> int:
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
        _drop_privileges(job["uid"])
        _set_limits(job["limits"])
        os.execve(job["argv"][0], job["argv"], job["env"])
    except (OSError, ValueError) as error:
        os.write(status_fd, marshal.dumps({"error": str(error)}))
    os._exit(127)


def _drop_privileges(uid: int | None) -> None:
    """Change to user `uid`: the kernel does not limit the number of root's processes."""
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)


def _set_limits(limits: dict[str, Any]) -> None:
    cpu = int(limits["cpu_seconds"]) + 1
    bounds = {
        resource.RLIMIT_CPU: cpu,
        resource.RLIMIT_AS: limits["max_memory"],
        resource.RLIMIT_FSIZE: limits["max_file_size"],
        resource.RLIMIT_NOFILE: 64,
        resource.RLIMIT_CORE: 0,
    }
    if limits["max_processes"] is not None:
        bounds[resource.RLIMIT_NPROC] = limits["max_processes"]
    for kind, bound in bounds.items():
        hard = resource.getrlimit(kind)[1]
        value = bound if hard == resource.RLIM_INFINITY else min(bound, hard)
        resource.setrlimit(kind, (value, value))


def _supervise(child: int, limits: dict[str, Any]) -> dict[str, Any]:
    """Wait until the program ends or exceeds a limit; exit when the other end of standard input is closed."""
    deadline = time.monotonic() + limits["wall_seconds"]
    poll = select.poll()
    poll.register(0, select.POLLHUP)
    poll.register(os.pidfd_open(child), select.POLLIN)
    termination, code, cpu, peak_memory = None, None, 0.0, 0
    while termination is None:
        ready = poll.poll(min(_TICK_MS, max(0, int(1000 * (deadline - time.monotonic())) + 1)))
        exit_code = _reap(child)
        if exit_code is not None:
            termination, code = "exit" if exit_code >= 0 else "signal", abs(exit_code)
            cpu = max(cpu, _cpu_of_reaped())
            break
        if any(fd == 0 for fd, _ in ready):
            sys.exit("the result is no longer needed")
        cpu, resident = _usage()
        peak_memory = max(peak_memory, resident)
        termination = _exceeded_limit(cpu, resident, deadline, limits)
    return {"termination": termination, "code": code, "cpu_seconds": cpu, "peak_memory": peak_memory}


def _exceeded_limit(cpu: float, resident: int, deadline: float, limits: dict[str, Any]) -> str | None:
    if resident > limits["max_memory"]:
        return "memory"
    if cpu > limits["cpu_seconds"]:
        return "cpu"
    return "time" if time.monotonic() >= deadline else None


def _reap(child: int) -> int | None:
    """Reap all ended processes; return the child's exit code, or minus its signal, or None while it runs."""
    exit_code = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return exit_code
        if pid == child:
            exit_code = os.waitstatus_to_exitcode(status)
        if pid == 0:
            return exit_code


def _cpu_of_reaped() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _usage() -> tuple[float, int]:
    """Return CPU seconds and bytes of resident memory of all processes."""
    cpu, memory = _cpu_of_reaped(), 0
    for pid in _descendants():
        try:
            times = _stat(pid)[11:15]
            with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as status:
                resident = [line.split()[1] for line in status if line.startswith(("RssAnon:", "RssShmem:"))]
        except (FileNotFoundError, ProcessLookupError):
            continue
        cpu += sum(map(int, times)) / _CLOCK_TICKS
        memory += sum(map(int, resident)) * 1024
    return cpu, memory


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat after the command's name."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
        return stat.read().rpartition(")")[2].split()


def _descendants() -> list[int]:
    """Return the descendants of this process; in a namespace of its own, all other processes."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                children.setdefault(int(_stat(int(name))[1]), []).append(int(name))
            except (FileNotFoundError, ProcessLookupError):
                continue
    if os.getpid() == 1:
        return [pid for family in children.values() for pid in family if pid != 1]
    found = list(children.get(os.getpid(), []))
    for pid in found:
        found += children.get(pid, [])
    return found


def _kill_descendants() -> None:
    if os.getpid() == 1:
        return  # the kernel does it
    while remaining := _descendants():
        for pid in remaining:
            try:
                os.kill(pid, _SIGKILL)
            except ProcessLookupError:
                continue
        _reap(0)
        time.sleep(0.001)


def _prctl(setting: tuple[int, int]) -> None:
    import ctypes  # only where needed: it takes a quarter of this process's time

    if ctypes.CDLL(None, use_errno=True).prctl(*setting, 0, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl {setting}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
