"""Execution of one program: start it, send the job, read its output, enforce the time and output limits."""

from __future__ import annotations

import marshal
import os
import select
import selectors
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict
from typing import IO, Any

from text2grad.sandbox import syscalls
from text2grad.sandbox.backends import (
    PYTHON,
    SCRATCH,
    Backend,
    allocate_uid,
    build_command,
    launcher,
    package_paths,
    supervisor_modules,
)
from text2grad.sandbox.result import ExecutionResult, ResourceLimits, Script, Termination
from text2grad.sandbox.seccomp import asked_calls, asking_filter, denying_filter, number_of

_GRACE_SECONDS = 5.0  # beyond the wall limit, for the sandbox itself to start and stop
_CHUNK = 1 << 16

# As `python main.py`, without the search for packages at start, which can take longer than the program.
_MAIN = (
    "import site; site.setquit(); del site; __file__ = 'main.py'; "
    "exec(compile(open(__file__, 'rb').read(), __file__, 'exec'))"
)


class SandboxError(RuntimeError):
    """The sandbox itself failed; the program may not have run."""


def execute(program: Script, limits: ResourceLimits, backend: Backend) -> ExecutionResult:
    """Run `program` inside `backend`; all of its processes are gone when this returns."""
    start = time.monotonic()
    with _scratch_folder(backend) as scratch, _start_process(limits, backend) as (process, status_pipe, status_fd):
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        job = _job(program, limits, backend, scratch) | {"status_fd": status_fd}
        _send(process.stdin, marshal.dumps((launcher(backend, limits), supervisor_modules(), job)))
        max_sizes = {process.stdout: limits.max_output, process.stderr: limits.max_output, status_pipe: _CHUNK}
        (out, err, status), exceeded = _read_pipes(max_sizes, start + limits.wall_seconds + _GRACE_SECONDS)
    wall_seconds = time.monotonic() - start
    stdout, stderr = (data.decode("utf-8", errors="replace") for data in (out, err))
    report: dict[str, Any] = marshal.loads(status) if status else {}
    if exceeded is not None:
        report = {"termination": exceeded, "code": None, "cpu_seconds": 0.0, "peak_memory": 0}
    if "termination" not in report:
        detail = report.get("error") or stderr.strip() or f"exit code {process.returncode}"
        raise SandboxError(f"the {backend} sandbox could not run a program: {detail}")
    return ExecutionResult(stdout=stdout, stderr=stderr, wall_seconds=wall_seconds, **report)


def _scratch_folder(backend: Backend) -> AbstractContextManager[str]:
    if backend == "unsafe":
        return tempfile.TemporaryDirectory(prefix="text2grad-", ignore_cleanup_errors=True)
    return nullcontext(SCRATCH)


def _job(program: Script, limits: ResourceLimits, backend: Backend, scratch: str) -> dict[str, Any]:
    unsafe = backend == "unsafe"
    # without a namespace, the user's other processes would count
    limit_values = asdict(limits) | ({"max_processes": None} if unsafe else {})
    return {
        "argv": [PYTHON, "-s", "-S", "-B", "-c", _MAIN],
        "env": {
            "PYTHONHASHSEED": "0",  # the order of sets must not change what a program earns
            "HOME": scratch,
            "TMPDIR": scratch,
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "PYTHONUTF8": "1",
            "PYTHONPATH": os.pathsep.join(package_paths()),
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "MALLOC_ARENA_MAX": "1",  # each other one would reserve 64 MiB of address space
        },
        "source": program.source,
        "stdin": program.stdin,
        "scratch": scratch,
        "limits": limit_values,
        "address_space": limits.max_memory if unsafe else limits.max_memory - limits.max_disk,
        "filters": None if unsafe else _filters(),
        "uid": None if unsafe else allocate_uid(),
    }


def _filters() -> dict[str, Any]:
    return {
        "asking": asking_filter(),
        "asked_calls": asked_calls(),
        "denying": denying_filter(),
        "seccomp": number_of(syscalls.SECCOMP),
    }


@contextmanager
def _start_process(
    limits: ResourceLimits, backend: Backend
) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes], int]]:
    """Start the supervisor; yield it, the pipe of its report, and that pipe's descriptor on its side."""
    reader, writer = os.pipe()
    with open(reader, "rb", buffering=0) as status_pipe:
        try:
            process = subprocess.Popen(
                build_command(backend, limits),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                pass_fds=(writer,),
                start_new_session=True,
            )
        finally:
            os.close(writer)
        with process:
            try:
                yield process, status_pipe, writer
            finally:
                _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Close standard input, upon which the supervisor exits; kill one that does not, and with it its namespace."""
    assert process.stdin is not None
    process.stdin.close()
    # Popen.wait(timeout) sleeps for longer than a short program runs
    pidfd = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        if not poll.poll(1000):
            process.kill()
    finally:
        os.close(pidfd)


def _send(stdin: IO[bytes], data: bytes) -> None:
    message = memoryview(data)
    try:
        while message:
            message = message[stdin.write(message) :]
    except BrokenPipeError:
        return  # the sandbox did not start; its standard error tells why


def _read_pipes(max_sizes: dict[IO[bytes], int], deadline: float) -> tuple[list[bytes], Termination | None]:
    """Read until all pipes close, or one has more bytes than it may ("output"), or the deadline passes ("time")."""
    data: dict[Any, bytearray] = {pipe: bytearray() for pipe in max_sizes}
    exceeded: Termination | None = None
    with selectors.DefaultSelector() as selector:
        for pipe in max_sizes:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map() and exceeded is None:
            ready = selector.select(deadline - time.monotonic())
            exceeded = None if ready else "time"
            for key, _ in ready:
                chunk = os.read(key.fd, _CHUNK)
                data[key.fileobj] += chunk
                if not chunk:
                    selector.unregister(key.fileobj)
            if any(len(data[pipe]) > size for pipe, size in max_sizes.items()):
                exceeded = "output"
    return [bytes(data[pipe][:size]) for pipe, size in max_sizes.items()], exceeded
