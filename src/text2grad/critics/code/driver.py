"""Runs inside the sandbox: the answer against each case of its tests, each in a process of its own.

It runs as a script of its own and needs nothing but the standard library. Standard input has the payload as JSON:
{"token", "source", "setup", "imports", "cases", "seconds", "budget", "readable"}; standard output gets one line, the
token and the results as JSON. The answer never sees that token: each of its processes reports to this one through a
pipe, with a token of its own. Which lines ran is kept in memory shared with that process, so it is known however it
ended.
"""

from __future__ import annotations

import builtins
import importlib
import json
import mmap
import os
import select
import signal
import site
import sys
import time
from collections.abc import Callable
from types import CodeType, FrameType, ModuleType, TracebackType
from typing import Any

ANSWER = "<answer>"
_HEADER = 4  # bytes of the number of the line that ran last
_IMPORTED, _TESTED = 1, 2
_GRACE = 0.5
_SHOWN = 400  # characters of a value
_WATCHED = {
    "socket.connect": "opens a network connection",
    "socket.getaddrinfo": "looks up a network address",
    "socket.bind": "opens a network port",
    "subprocess.Popen": "starts another program",
    "os.system": "runs a shell command",
    "os.exec": "starts another program",
    "os.posix_spawn": "starts another program",
    "os.kill": "sends a signal to a process",
    "os.killpg": "sends a signal to a process",
}

_exec, _eval, _compile = exec, eval, compile  # an answer may replace the built-in ones

Result = dict[str, Any]


def main() -> None:
    payload = json.load(sys.stdin)
    token, out = payload.pop("token"), os.dup(1)
    site.setquit()
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    os.dup2(1, 2)
    os.dup2(1, 0)
    results = _all_cases(payload, out)
    message = memoryview((token + json.dumps(results) + "\n").encode())
    while message:
        message = message[os.write(out, message) :]


def _all_cases(payload: dict[str, Any], out: int) -> dict[str, Any]:
    try:
        code = _compile(payload["source"], ANSWER, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        return {"syntax": _syntax(error)}
    for name in payload["imports"]:  # once here, not once in each process; what is missing shows up there
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    lines = payload["source"].count("\n") + payload["source"].count("\r") + 2
    deadline = time.monotonic() + payload["budget"]
    results = []
    for case in payload["cases"]:
        left = deadline - time.monotonic()
        results.append(_one_case(code, case, payload, lines, out, left) if left > 0 else {"verdict": "not run"})
    return {"results": results}


def _syntax(error: BaseException) -> Result:
    described: Result = {"kind": type(error).__name__, "message": str(error)}
    if isinstance(error, SyntaxError):
        described["message"] = error.msg
        described["place"] = [error.lineno, error.offset, error.end_lineno, error.end_offset]
    return described


def _one_case(
    code: CodeType, case: dict[str, Any], payload: dict[str, Any], lines: int, out: int, left: float
) -> Result:
    """With every line traced; a case that is too slow for that gets a second chance without."""
    traced = _forked(code, case, payload, lines, out, left, tracing=True)
    if traced["verdict"] != "timeout" or traced.get("idle"):
        return traced
    plain = _forked(code, case, payload, lines, out, left, tracing=False)
    if plain["verdict"] == "timeout":
        return traced
    return {**plain, "lines": traced["lines"], "last": traced["last"]}


def _forked(
    code: CodeType, case: dict[str, Any], payload: dict[str, Any], lines: int, out: int, left: float, tracing: bool
) -> Result:
    seen = mmap.mmap(-1, _HEADER + lines + 1)
    token = os.urandom(16)
    reading, writing = os.pipe()
    seconds = min(payload["seconds"], left)
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.close(out)
        _child(code, case, payload, seen, writing, token, seconds, tracing)
    os.close(writing)
    said = _read(reading, 3 * seconds + _GRACE)
    os.close(reading)
    result = json.loads(said[16:]) if said.startswith(token) else None
    if result is None:
        result = {"verdict": "timeout" if not _gone(child) else "vanished"}
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if result["verdict"] == "vanished":
        result["status"] = os.waitstatus_to_exitcode(status)
    result["lines"] = [line for line in range(1, lines + 1) if seen[_HEADER + line] & _TESTED]
    result["last"] = int.from_bytes(seen[:_HEADER], "little")
    seen.close()
    return result


def _gone(child: int) -> bool:
    """Whether it has ended; it stays a zombie until it is buried."""
    waiting = select.poll()
    pidfd = os.pidfd_open(child)
    waiting.register(pidfd, select.POLLIN)
    try:
        return bool(waiting.poll(50))
    finally:
        os.close(pidfd)


def _read(fd: int, seconds: float) -> bytes:
    """What comes until the other end closes or time is up."""
    deadline, parts = time.monotonic() + seconds, []
    waiting = select.poll()
    waiting.register(fd, select.POLLIN)
    while waiting.poll(max(0.0, deadline - time.monotonic()) * 1000):
        part = os.read(fd, 1 << 16)
        if not part:
            break
        parts.append(part)
    return b"".join(parts)


def _child(
    code: CodeType,
    case: dict[str, Any],
    payload: dict[str, Any],
    seen: mmap.mmap,
    pipe: int,
    token: bytes,
    seconds: float,
    tracing: bool,
) -> None:
    """Never returns. The functions it needs at the end are held here, out of the answer's reach."""
    write, leave, dumps = os.write, os._exit, json.JSONEncoder().encode
    forbidden: list[list[Any]] = []

    def report(result: Result) -> None:
        message = token + dumps({**result, "forbidden": forbidden[:1]}).encode()
        while message:
            message = message[write(pipe, message) :]
        leave(0)

    def too_slow(number: int, frame: FrameType | None) -> None:
        report({"verdict": "timeout", "stack": _stack(frame), "idle": number == signal.SIGALRM})

    signal.signal(signal.SIGPROF, too_slow)
    signal.signal(signal.SIGALRM, too_slow)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, 3 * seconds)
    sys.addaudithook(_watch(forbidden, payload["readable"]))
    try:
        report(_judge(code, case, payload, seen, tracing))
    finally:
        leave(1)


def _judge(code: CodeType, case: dict[str, Any], payload: dict[str, Any], seen: mmap.mmap, tracing: bool) -> Result:
    phase = "import"
    module = ModuleType("answer")
    sys.modules["answer"] = sys.modules["__main__"] = module
    names = module.__dict__
    try:
        _trace(seen, _IMPORTED, tracing)
        _exec(code, names)
        sys.settrace(None)
        phase = "setup"
        _exec(_compile(payload["setup"], "<tests>", "exec"), names)
        _exec(_compile(case["setup"], "<tests>", "exec"), names)
        phase = "test"
        _trace(seen, _TESTED, tracing)
        return _check(case, names)
    except BaseException as error:  # whatever the answer raises is what there is to report
        sys.settrace(None)
        return _raised(error, phase, case)


def _check(case: dict[str, Any], names: dict[str, Any]) -> Result:
    if case["left"] is None:
        _exec(_compile(case["source"], "<tests>", "exec"), names)
        sys.settrace(None)
        return {"verdict": "passed"}
    got = _eval(_compile(case["left"], "<tests>", "eval"), names)
    sys.settrace(None)
    if case["operator"] in ("truthy", "falsy"):
        held = bool(got) is (case["operator"] == "truthy")
        return {"verdict": "passed"} if held else {"verdict": "failed", "got": _shown(got)}
    expected = _eval(_compile(case["right"], "<tests>", "eval"), names)
    held = _eval(f"_got {case['operator']} _expected", {"_got": got, "_expected": expected})
    return {"verdict": "passed"} if held else {"verdict": "failed", "got": _shown(got), "expected": _shown(expected)}


def _raised(error: BaseException, phase: str, case: dict[str, Any]) -> Result:
    frames = _answer_frames(error.__traceback__)
    failed = isinstance(error, AssertionError) and not frames
    kind = type(error)
    name = getattr(error, "name", None) if isinstance(error, ImportError | NameError | AttributeError) else None
    return {
        "verdict": "failed" if failed else "raised",
        "phase": phase,
        "kind": kind.__name__,
        "family": [base.__name__ for base in kind.__mro__],
        "message": _shown(error, str),
        "name": name if type(name) is str else None,
        "places": frames if len(frames) <= 20 else frames[:10] + frames[-10:],
    }


def _answer_frames(trace: TracebackType | None) -> list[list[int | None]]:
    """The places in the answer, from the outermost call to where it was raised: line, column, end line, end column."""
    found = []
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == ANSWER:
            positions = list(code.co_positions())[trace.tb_lasti // 2]
            line, end_line, column, end_column = positions
            found.append([line or trace.tb_lineno, column, end_line, end_column])
        trace = trace.tb_next
    return found


def _stack(frame: FrameType | None) -> list[int]:
    found = []
    while frame is not None:
        if frame.f_code.co_filename == ANSWER:
            found.append(frame.f_lineno)
        frame = frame.f_back
    return found[:20]


def _trace(seen: mmap.mmap, mark: int, tracing: bool) -> None:
    if not tracing:
        return

    def local(frame: FrameType, event: str, _: object) -> Any:
        if event == "line":
            line = frame.f_lineno
            seen[_HEADER + line] |= mark
            seen[:_HEADER] = line.to_bytes(_HEADER, "little")
        return local

    sys.settrace(lambda frame, event, argument: local if frame.f_code.co_filename == ANSWER else None)


def _watch(forbidden: list[list[Any]], readable: list[str]) -> Any:
    """An audit hook that notes what an answer has no business doing, and the line that does it."""
    allowed = (os.getcwd(), os.devnull, "/proc/self", *readable)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        what = _WATCHED.get(event)
        if event == "open" and isinstance(arguments[0], str) and not _inside(arguments[0], allowed):
            writes = isinstance(arguments[1], str) and set(arguments[1]) & set("wax+")
            what = f"{'writes' if writes else 'reads'} the file {arguments[0][:200]!r}"
        if what is not None:
            stack = _stack(sys._getframe())
            if stack:
                forbidden.append([what, stack[0]])

    return hook


def _inside(path: str, folders: tuple[str, ...]) -> bool:
    path = os.path.abspath(path)
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)


def _shown(value: Any, how: Callable[[Any], str] = repr) -> str:
    """At most so many characters; showing a value runs code of the answer, which may fail in any way."""
    try:
        text = how(value)
    except BaseException as error:
        return f"<{type(value).__name__} that cannot be shown: {type(error).__name__}>"
    text = text.encode("utf-8", "replace").decode()  # half a character cannot be written down
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


if __name__ == "__main__":
    builtins.input = lambda *_: (_ for _ in ()).throw(EOFError("there is no input"))
    main()
