"""The starter: forks the answer's processes. It never sees the tests."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import _socket
import os
import sys

from text2grad.critics.code.judging import answer
from text2grad.critics.code.judging.confine import confine, prepare_filter
from text2grad.critics.code.judging.wire import dump, receive, send

TYPE_CHECKING = False
if TYPE_CHECKING:
    import mmap
    from typing import Any

RUN_TRACED, RUN, STOP = b"t", b"r", b"s"


class Starter:
    """The judge's ends of two sockets: to the starter, and to the process of the answer that it has forked.

    One process runs at a time, so all use the same socket; what one has left in it is discarded. The sandbox lets no
    process pass descriptors to another.
    """

    def __init__(self, lines: mmap.mmap) -> None:
        """Fork the starter. `lines`: shared memory for the executed lines of the running process."""
        self._control, control = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
        self._data, data = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
        if os.fork() == 0:
            try:
                keep = {control.fileno(), data.fileno()}
                for fd in range(256):
                    if fd not in keep:
                        _close(fd)
                for fd in {0, 1, 2} - keep:
                    os.dup2(os.open(os.devnull, os.O_RDWR), fd)
                _serve(control, data, lines)
            finally:
                os._exit(1)
        control.close()
        data.close()
        self._data.setblocking(False)  # an answer that does not read must not block the judge

    def configure(self, settings: dict[str, Any]) -> dict[str, Any] | None:
        """Send the program and what it may know; return the compiler's error if it is not valid Python."""
        send(self._control.fileno(), dump(settings))
        error: dict[str, Any] | None = self._receive()["invalid_syntax"]
        return error

    def start(self, tracing: bool) -> tuple[int, int]:
        """Start a process of the answer; return its id and a descriptor of the socket to it."""
        self._control.sendall(RUN_TRACED if tracing else RUN)
        return self._receive()["pid"], os.dup(self._data.fileno())

    def stop(self) -> dict[str, Any]:
        """Kill the process; return its "exit_code", minus the signal if one ended it before, and "cpu_seconds"."""
        self._control.sendall(STOP)
        usage = self._receive()
        _discard(self._data)
        return usage

    def _receive(self) -> dict[str, Any]:
        reply = receive(self._control.fileno())
        if reply is None:
            raise EOFError("the process that starts the answer has ended")
        assert type(reply) is dict
        return reply


def preload(names: list[str]) -> None:
    """Import modules; one that cannot be imported is reported where it is used."""
    for name in names:
        try:
            __import__(name)
        except Exception:  # whatever an import raises
            continue


def _serve(control: Any, data: Any, lines: mmap.mmap) -> None:
    settings: Any = receive(control.fileno())
    program = prepare_filter()
    code, error = _compile(settings["source"])
    preload(settings["preload"])  # once here instead of in each process
    send(control.fileno(), dump({"invalid_syntax": error}))
    while True:
        command = control.recv(1)
        if not command:
            os._exit(0)
        pid = os.fork()
        if pid == 0:
            control.close()
            _seed_random()
            confine(program)
            answer.run(code, data.fileno(), settings, lines, tracing=command == RUN_TRACED)
        send(control.fileno(), dump({"pid": pid}))
        if control.recv(1) != STOP:
            os._exit(0)
        usage = _kill(pid)
        _discard(data)
        send(control.fileno(), dump(usage))


def _discard(data: Any) -> None:
    """Read what is left in a socket whose other user has ended."""
    try:
        while data.recv(1 << 16, _socket.MSG_DONTWAIT):
            pass
    except BlockingIOError:
        return


def _close(fd: int) -> None:
    try:
        os.close(fd)
    except OSError:
        return


def _compile(source: str) -> tuple[Any, dict[str, Any] | None]:
    try:
        return compile(source, answer.FILE_NAME, "exec", dont_inherit=True), None
    except SyntaxError as error:
        extent = [error.lineno, error.offset, error.end_lineno, error.end_offset]
        return None, {"message": error.msg, "extent": extent}
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        return None, {"message": str(error), "extent": None}


def _kill(pid: int) -> dict[str, Any]:
    os.kill(pid, _signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    return {"exit_code": os.waitstatus_to_exitcode(status), "cpu_seconds": usage.ru_utime + usage.ru_stime}


def _seed_random() -> None:
    """Make what the program draws the same in every run."""
    if "random" in sys.modules:
        sys.modules["random"].seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)
