"""One program from start to end: hand it over, collect what it says, never wait or remember more than agreed."""

from __future__ import annotations

import marshal
import os
import select
import selectors
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import IO, Any

from text2grad.sandbox.backends import PYTHON, SCRATCH, Backend, command, packages, spare_uid
from text2grad.sandbox.outcome import Limits, Outcome, Program

_GRACE = 5.0  # seconds beyond the wall limit for the sandbox itself to start and end
_CHUNK = 1 << 16

# As `python main.py`, without the search for packages at start, which can take longer than the program.
_MAIN = (
    "import site; site.setquit(); del site; __file__ = 'main.py'; "
    "exec(compile(open(__file__, 'rb').read(), __file__, 'exec'))"
)


class SandboxError(RuntimeError):
    """The sandbox itself broke; the program may never have run."""


@dataclass
class _Stream:
    """The first `limit` bytes of a pipe."""

    limit: int
    kept: bytearray = field(default_factory=bytearray)
    over: bool = False

    def take(self, part: bytes) -> None:
        room = self.limit - len(self.kept)
        self.over |= len(part) > room
        self.kept += part[:room]

    def text(self) -> str:
        return self.kept.decode("utf-8", errors="replace")


def execute(program: Program, limits: Limits, backend: Backend) -> Outcome:
    """Run `program` shut in by `backend`; it and all that it started are gone when this returns."""
    if backend == "unsafe":
        with tempfile.TemporaryDirectory(prefix="text2grad-", ignore_cleanup_errors=True) as scratch:
            return _execute(program, limits, backend, scratch)
    return _execute(program, limits, backend, SCRATCH)


def _execute(program: Program, limits: Limits, backend: Backend, scratch: str) -> Outcome:
    began = time.monotonic()
    out, err, status = _Stream(limits.output), _Stream(limits.output), _Stream(_CHUNK)
    with _started(limits, backend) as (process, status_pipe):
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        _send(process.stdin, _job(program, limits, backend, scratch))
        streams = {process.stdout: out, process.stderr: err, status_pipe: status}
        finished = _collect(streams, began + limits.wall + _GRACE)
    wall = time.monotonic() - began
    said: dict[str, Any] = marshal.loads(status.kept) if status.kept else {}
    if out.over or err.over:
        said = {"ending": "output", "code": None}
    elif not finished:
        said = {"ending": "time", "code": None}
    if "ending" not in said:
        detail = said.get("failed") or err.text().strip() or f"it ended with code {process.returncode}"
        raise SandboxError(f"the {backend} sandbox could not run a program: {detail}")
    return Outcome(
        ending=said["ending"],
        code=said["code"],
        stdout=out.text(),
        stderr=err.text(),
        wall=wall,
        cpu=said.get("cpu", 0.0),
        memory=said.get("memory", 0),
    )


def _job(program: Program, limits: Limits, backend: Backend, scratch: str) -> dict[str, Any]:
    bounds: dict[str, Any] = asdict(limits)
    if backend == "unsafe":
        bounds["processes"] = None  # without a namespace, the user's other processes would count
    return {
        "argv": [PYTHON, "-s", "-S", "-B", "-c", _MAIN],
        "env": {
            "HOME": scratch,
            "TMPDIR": scratch,
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "PYTHONUTF8": "1",
            "PYTHONPATH": os.pathsep.join(packages()),
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        },
        "files": {**dict(program.files), "main.py": program.source},
        "stdin": program.stdin,
        "scratch": scratch,
        "limits": bounds,
        "uid": None if backend == "unsafe" else spare_uid(),
    }


@contextmanager
def _started(limits: Limits, backend: Backend) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
    reading, writing = os.pipe()
    with open(reading, "rb", buffering=0) as status_pipe:
        try:
            process = subprocess.Popen(
                command(backend, limits, writing),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                pass_fds=(writing,),
                start_new_session=True,
            )
        finally:
            os.close(writing)
        with process:
            try:
                yield process, status_pipe
            finally:
                _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Closing its standard input tells the supervisor to end; one that cannot hear is killed, and takes all along."""
    assert process.stdin is not None
    process.stdin.close()
    if not _ended(process, seconds=1.0):
        process.kill()


def _ended(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait, without the sleeps of `Popen.wait(timeout)`, which are longer than a short program."""
    pidfd = os.pidfd_open(process.pid)
    waiting = select.poll()
    waiting.register(pidfd, select.POLLIN)
    try:
        return bool(waiting.poll(seconds * 1000))
    finally:
        os.close(pidfd)


def _send(stdin: IO[bytes], job: dict[str, Any]) -> None:
    try:
        body = marshal.dumps(job)
        message = memoryview(len(body).to_bytes(8, "big") + body)
        while message:
            message = message[stdin.write(message) :]
    except BrokenPipeError:
        return  # the sandbox did not start; its standard error says why


def _collect(streams: dict[IO[bytes], _Stream], deadline: float) -> bool:
    """Read all pipes until they end (True), the deadline passes, or one of them is over its limit (False)."""
    with selectors.DefaultSelector() as selector:
        for pipe in streams:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(deadline - time.monotonic())
            if not ready:
                return False
            for key, _ in ready:
                part = os.read(key.fd, _CHUNK)
                streams[key.fileobj].take(part)  # type: ignore[index]  # the pipes are what was registered
                if not part:
                    selector.unregister(key.fileobj)
            if any(stream.over for stream in streams.values()):
                return False
    return True
