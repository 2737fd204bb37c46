"""The first process inside a sandbox: starts the program, enforces its limits and reports how it terminated.

It runs as a script and needs only the standard library. Its standard input carries the modules that it consists of and
the job, marshalled, and stays open until the result is no longer needed. The report goes to the job's `status_fd`,
also marshalled: both ends are the same interpreter, and importing json or typing would double the start-up time. When
this process exits, the kernel kills whatever the program has left behind, because it is the first process of its
namespace; without a namespace it kills them itself.
"""

from __future__ import annotations

import _ctypes  # `ctypes` takes five times as long to import, `signal` and `socket` ten times
import _signal  # type: ignore[import-not-found]
import _socket
import marshal
import os
import resource
import select
import struct
import sys
import time
from fcntl import fcntl

from text2grad.sandbox.memory import MAX_OPEN_FILES, Budget
from text2grad.sandbox.processes import list_processes, measure_memory, num_file_locks, scratch_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TICK_SECONDS = 0.02
_MAX_FILE_LOCKS = 10_000
# No limit of the kernel counts page tables: they show only when they are measured, up to three times the address space.
# An honest program needs a five-hundredth of its memory and some pages for each library.
_MAX_PAGE_TABLES = 1 / 16  # of the memory
_MAX_SIGNALS = 1_024  # that wait for delivery
_PR_SET_NOT_DUMPABLE, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = (4, 0), (36, 1), (38, 1)
_SET_FILTER, _NEW_LISTENER = 1, 8
_ADD_SEALS, _ALL_SEALS = 1033, 0xF
_SIGINT, _SIGKILL = 2, 9
_RLIMIT_NICE, _RLIMIT_RTPRIO = 13, 14


def main(job: dict[str, Any]) -> None:
    """Run the job, report to its `status_fd` and exit."""
    _signal.signal(_SIGINT, _signal.SIG_DFL)  # the kernel then does not deliver it to the first process
    os.set_inheritable(job["status_fd"], False)
    if os.getpid() != 1:
        _prctl(_PR_SET_CHILD_SUBREAPER)
        _prctl(_PR_SET_NO_NEW_PRIVS)
    if job["uid"] is None:
        _prctl(_PR_SET_NOT_DUMPABLE)  # a program of the same user must not access this process through /proc
    os.chdir(job["scratch"])
    with open("main.py", "w", encoding="utf-8", errors="surrogatepass", newline="") as out:
        out.write(job["source"])
    child, budget = _start_program(job)
    if job["uid"] is not None:  # the limits of a process can be changed by its user; the effective one stays root
        os.setresgid(job["uid"], 0, 0)
        os.setresuid(job["uid"], 0, 0)
    try:
        report = _supervise(child, job, budget)
    finally:
        _kill_descendants()
    os.write(job["status_fd"], marshal.dumps(report))
    os._exit(0)  # skips the interpreter's clean-up


def _start_program(job: dict[str, Any]) -> tuple[int, Budget | None]:
    """Fork and execute the program; return its process and the budget that its forks are asked from."""
    here, there = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
    child = os.fork()
    if child:
        there.close()
        _, control, _, _ = here.recvmsg(1, 64)
        here.close()
        if not job["filters"] or not control:  # without a listener, the program did not start
            return child, None
        listener = struct.unpack("i", control[0][2])[0]
        asked_calls, max_files = job["filters"]["asked_calls"], job["limits"]["max_files"]
        return child, Budget(job["address_space"], listener, asked_calls, job["scratch"], max_files)
    try:
        _redirect_input(job["stdin"])
        os.setsid()
        _drop_privileges(job["uid"])
        _set_limits(job["limits"], job["address_space"])
        if job["filters"]:
            _drop_capabilities()
            listener = _install_filter(job["filters"]["asking"], job["filters"]["seccomp"], _NEW_LISTENER)
            rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("i", listener))
            here.close()
            there.sendmsg([b"x"], [rights])
            os.close(listener)
            _install_filter(job["filters"]["denying"], job["filters"]["seccomp"], 0)
        os.execve(job["argv"][0], job["argv"], job["env"])
    except (OSError, ValueError) as error:
        os.write(job["status_fd"], marshal.dumps({"error": str(error)}))
    os._exit(127)


def _redirect_input(text: str) -> None:
    stdin = os.memfd_create("stdin", os.MFD_ALLOW_SEALING)
    data = memoryview(text.encode("utf-8", errors="surrogatepass"))
    while data:
        data = data[os.write(stdin, data) :]
    os.lseek(stdin, 0, os.SEEK_SET)
    fcntl(stdin, _ADD_SEALS, _ALL_SEALS)  # it would be memory that nobody counts
    os.dup2(stdin, 0)
    os.close(stdin)


def _drop_privileges(uid: int | None) -> None:
    """Change to user `uid`: the kernel does not limit the number of root's processes."""
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)


def _drop_capabilities() -> None:
    """Empty the effective, the permitted and the inheritable set."""
    version_and_process = struct.pack("II", 0x20080522, 0)
    if _call("capset", version_and_process, bytes(24)):
        raise OSError("the capabilities cannot be dropped")


def _set_limits(limits: dict[str, Any], address_space: int) -> None:
    bounds = {
        resource.RLIMIT_CPU: int(limits["cpu_seconds"]) + 1,
        resource.RLIMIT_AS: address_space,
        resource.RLIMIT_FSIZE: limits["max_file_size"],
        resource.RLIMIT_NOFILE: MAX_OPEN_FILES,
        resource.RLIMIT_SIGPENDING: _MAX_SIGNALS,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_CORE: 0,
        _RLIMIT_NICE: 0,
        _RLIMIT_RTPRIO: 0,
    }
    if limits["max_processes"] is not None:
        bounds[resource.RLIMIT_NPROC] = limits["max_processes"]
    for kind, bound in bounds.items():
        hard = resource.getrlimit(kind)[1]
        value = bound if hard == resource.RLIM_INFINITY else min(bound, hard)
        resource.setrlimit(kind, (value, value))


def _supervise(child: int, job: dict[str, Any], budget: Budget | None) -> dict[str, Any]:
    """Wait until the program ends or exceeds a limit; exit when the other end of standard input is closed."""
    limits = job["limits"]
    now = time.monotonic()
    deadline, tick = now + limits["wall_seconds"], now + _TICK_SECONDS
    poll = select.poll()
    poll.register(0, select.POLLHUP)
    poll.register(os.pidfd_open(child), select.POLLIN)
    if budget is not None:
        poll.register(budget.listener, select.POLLIN)
    termination, code, cpu, peak_memory = None, None, 0.0, 0
    while termination is None:
        ready = {fd for fd, _ in poll.poll(1000 * max(0.0, min(tick, deadline) - time.monotonic()))}
        exit_code = _reap(child)
        if exit_code is not None:
            termination, code = "exit" if exit_code >= 0 else "signal", abs(exit_code)
            cpu = max(cpu, _cpu_of_reaped())
            break
        if 0 in ready:
            sys.exit("the result is no longer needed")
        if budget is not None and budget.listener in ready:
            budget.answer()
        now = time.monotonic()
        if now >= min(tick, deadline):
            found = list_processes()
            cpu = _cpu_of_reaped() + sum(seconds for _, seconds, _ in found.values())
            memory, is_kept = _measure_memory(found, job, budget)
            peak_memory = max(peak_memory, memory)
            if not is_kept:
                termination = "memory"
            elif cpu > limits["cpu_seconds"]:
                termination = "cpu"
            elif now >= deadline:
                termination = "time"
            tick = time.monotonic() + _TICK_SECONDS
    return {"termination": termination, "code": code, "cpu_seconds": cpu, "peak_memory": peak_memory}


def _measure_memory(
    found: dict[int, tuple[int, float, int]], job: dict[str, Any], budget: Budget | None
) -> tuple[int, bool]:
    """Return the bytes of memory of all processes and the scratch folder, and whether they keep the limits."""
    max_memory = job["limits"]["max_memory"]
    measured = [measure_memory(pid) for pid in found]
    tables = sum(size for _, size in measured)
    memory = sum(size for size, _ in measured) + tables
    if budget is None:
        return memory, memory <= max_memory
    memory += scratch_size(job["scratch"])
    is_kept = (
        memory <= max_memory
        and tables <= _MAX_PAGE_TABLES * max_memory
        and num_file_locks(_MAX_FILE_LOCKS) < _MAX_FILE_LOCKS
        and budget.is_kept({pid: size for pid, (_, _, size) in found.items() if size})
    )
    return memory, is_kept


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


def _kill_descendants() -> None:
    if os.getpid() == 1:
        return  # the kernel does it
    while remaining := list_processes():
        for pid in remaining:
            try:
                os.kill(pid, _SIGKILL)
            except ProcessLookupError:
                continue
        _reap(0)
        time.sleep(0.001)


def _install_filter(program: bytes, seccomp: int, flags: int) -> int:
    """Filter the system calls of this process and its children; return the listener if `flags` ask for one.

    program: instructions of 8 bytes. seccomp: the number of that system call.
    """
    address = id(program) + bytes.__basicsize__ - 1  # where an object of this type has its bytes
    header = struct.pack("HxxxxxxQ", len(program) // 8, address)
    result = _call("syscall", seccomp, _SET_FILTER, flags, header)
    if result < 0:
        raise OSError("the kernel does not filter system calls, or another filter of this kind is in place")
    return result


def _prctl(setting: tuple[int, int]) -> None:
    if _call("prctl", *setting, 0, 0, 0):
        raise OSError(f"prctl {setting} failed")


def _call(name: str, *arguments: int | bytes) -> int:
    library = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # None is this process
    result: int = _ctypes.call_function(_ctypes.dlsym(library, name), arguments)
    return result
