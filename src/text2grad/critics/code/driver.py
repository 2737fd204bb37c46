"""Runs a program against each of its test cases, each in a process of its own, inside the sandbox.

It is a script that needs only the standard library. Standard input has the payload as JSON: {"token", "source",
"setup", "imports", "cases", "test_timeout", "total_timeout", "readable"}; standard output gets one line, the token and
the results as JSON. The program never sees that token: its processes report to this one through a pipe, each with a
token of its own. The executed lines are kept in memory shared with that process, so they are known however it ends.
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
from functools import partial
from types import CodeType, FrameType, ModuleType, TracebackType
from typing import Any

FILE_NAME = "<answer>"
_HEADER = 4  # bytes of the number of the last executed line
_GRACE_SECONDS = 0.5
_MAX_VALUE = 400  # characters
_FORBIDDEN_EVENTS = {
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

_exec, _eval, _compile = exec, eval, compile  # a program may replace the built-in ones

Case = dict[str, Any]
Result = dict[str, Any]


def main() -> None:
    """Read the payload, run its cases and write the report."""
    payload = json.load(sys.stdin)
    token, out = payload.pop("token"), os.dup(1)
    site.setquit()
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    os.dup2(1, 2)
    os.dup2(1, 0)
    report = _run_cases(payload, out)
    message = memoryview((token + json.dumps(report) + "\n").encode())
    while message:
        message = message[os.write(out, message) :]


def _run_cases(payload: dict[str, Any], out: int) -> dict[str, Any]:
    try:
        code = _compile(payload["source"], FILE_NAME, "exec", dont_inherit=True)
    except SyntaxError as error:
        extent = [error.lineno, error.offset, error.end_lineno, error.end_offset]
        return {"invalid_syntax": {"message": error.msg, "extent": extent}}
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        return {"invalid_syntax": {"message": str(error), "extent": None}}
    for name in payload["imports"]:  # once here instead of in each process, where a missing one is reported
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    deadline = time.monotonic() + payload["total_timeout"]
    results = []
    for case in payload["cases"]:
        seconds = min(payload["test_timeout"], deadline - time.monotonic())
        results.append(_run_case(code, case, payload, out, seconds) if seconds > 0 else {"status": "not_run"})
    return {"results": results}


def _run_case(code: CodeType, case: Case, payload: dict[str, Any], out: int, seconds: float) -> Result:
    """Run a case with every line traced, and without tracing if that is too slow."""
    traced = _fork_and_run(code, case, payload, out, seconds, tracing=True)
    if traced["status"] != "timeout" or traced.get("idle"):
        return traced
    plain = _fork_and_run(code, case, payload, out, seconds, tracing=False)
    if plain["status"] == "timeout":
        return traced
    return {**plain, "executed_lines": traced["executed_lines"], "last_line": traced["last_line"]}


def _fork_and_run(
    code: CodeType, case: Case, payload: dict[str, Any], out: int, seconds: float, tracing: bool
) -> Result:
    lines = payload["source"].count("\n") + payload["source"].count("\r") + 2
    executed = mmap.mmap(-1, _HEADER + lines + 1)
    token = os.urandom(16)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.close(out)
        evaluate = partial(_evaluate, code, case, payload["setup"], executed, tracing)
        _run_in_child(evaluate, writer, token, seconds, payload["readable"])
    os.close(writer)
    message = _read(reader, 3 * seconds + _GRACE_SECONDS)
    os.close(reader)
    result = json.loads(message[16:]) if message.startswith(token) else None
    if result is None:
        result = {"status": "died" if _has_exited(child) else "timeout"}
    os.kill(child, signal.SIGKILL)
    _, wait_status = os.waitpid(child, 0)
    if result["status"] == "died":
        result["exit_code"] = os.waitstatus_to_exitcode(wait_status)
    result["executed_lines"] = [line for line in range(1, lines + 1) if executed[_HEADER + line]]
    result["last_line"] = int.from_bytes(executed[:_HEADER], "little")
    executed.close()
    return result


def _has_exited(child: int) -> bool:
    pidfd = os.pidfd_open(child)
    try:
        return bool(select.select([pidfd], [], [], 0.05)[0])
    finally:
        os.close(pidfd)


def _read(fd: int, seconds: float) -> bytes:
    """Read until the other end closes or the time is up."""
    deadline, chunks = time.monotonic() + seconds, []
    while select.select([fd], [], [], max(0.0, deadline - time.monotonic()))[0]:
        chunk = os.read(fd, 1 << 16)
        if not chunk:
            break
        chunks.append(chunk)
    return b"".join(chunks)


def _run_in_child(evaluate: Callable[[], Result], pipe: int, token: bytes, seconds: float, readable: list[str]) -> None:
    """Evaluate, report and exit. What reporting needs is held in locals: the program may replace the modules'."""
    write, exit_process, encode = os.write, os._exit, json.JSONEncoder().encode
    forbidden: list[list[Any]] = []

    def report(result: Result) -> None:
        message = token + encode({**result, "forbidden": next(iter(forbidden), None)}).encode()
        while message:
            message = message[write(pipe, message) :]
        exit_process(0)

    def report_timeout(number: int, frame: FrameType | None) -> None:
        report({"status": "timeout", "stack": _stack_lines(frame), "idle": number == signal.SIGALRM})

    signal.signal(signal.SIGPROF, report_timeout)
    signal.signal(signal.SIGALRM, report_timeout)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, 3 * seconds)
    sys.addaudithook(_make_audit_hook(forbidden, readable))
    try:
        report(evaluate())
    finally:
        exit_process(1)


def _evaluate(code: CodeType, case: Case, setup: str, executed: mmap.mmap, tracing: bool) -> Result:
    phase = "import"
    module = ModuleType("answer")
    sys.modules["answer"] = sys.modules["__main__"] = module
    names = module.__dict__
    try:
        if tracing:
            _trace(executed, is_test=False)
        _exec(code, names)
        sys.settrace(None)
        phase = "setup"
        _exec(_compile(setup, "<tests>", "exec"), names)
        _exec(_compile(case["setup"], "<tests>", "exec"), names)
        phase = "test"
        if tracing:
            _trace(executed, is_test=True)
        return _check_case(case, names)
    except BaseException as error:  # also SystemExit and KeyboardInterrupt
        sys.settrace(None)
        return _describe_exception(error, phase)


def _check_case(case: Case, names: dict[str, Any]) -> Result:
    if case["left"] is None:
        _exec(_compile(case["source"], "<tests>", "exec"), names)
        sys.settrace(None)
        return {"status": "passed"}
    actual = _eval(_compile(case["left"], "<tests>", "eval"), names)
    sys.settrace(None)
    if case["operator"] in ("truthy", "falsy"):
        holds = bool(actual) is (case["operator"] == "truthy")
        return {"status": "passed"} if holds else {"status": "failed", "actual": _format_value(actual)}
    expected = _eval(_compile(case["right"], "<tests>", "eval"), names)
    holds = _eval(f"_actual {case['operator']} _expected", {"_actual": actual, "_expected": expected})
    if holds:
        return {"status": "passed"}
    return {"status": "failed", "actual": _format_value(actual), "expected": _format_value(expected)}


def _describe_exception(error: BaseException, phase: str) -> Result:
    frames = _traceback_extents(error.__traceback__)
    failed = isinstance(error, AssertionError) and not frames
    name = getattr(error, "name", None) if isinstance(error, ImportError | NameError | AttributeError) else None
    return {
        "status": "failed" if failed else "raised",
        "phase": phase,
        "exception": type(error).__name__,
        "exception_bases": [base.__name__ for base in type(error).__mro__],
        "message": _format_value(error, str),
        "missing_name": name if type(name) is str else None,
        "traceback": frames if len(frames) <= 20 else frames[:10] + frames[-10:],
    }


def _traceback_extents(trace: TracebackType | None) -> list[list[int]]:
    """Return [line, column, end line, end column] of each frame of the program, outermost first.

    Where a column is unknown, the extent is the whole line: column 0 to column 0 of the next.
    """
    found = []
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == FILE_NAME:
            line, end_line, column, end_column = list(code.co_positions())[trace.tb_lasti // 2]
            line = line or trace.tb_lineno or 0
            if column is None or end_line is None or end_column is None:
                column, end_line, end_column = 0, line + 1, 0
            found.append([line, column, end_line, end_column])
        trace = trace.tb_next
    return found


def _stack_lines(frame: FrameType | None) -> list[int]:
    found = []
    while frame is not None:
        if frame.f_code.co_filename == FILE_NAME:
            found.append(frame.f_lineno)
        frame = frame.f_back
    return found[:20]


def _trace(executed: mmap.mmap, is_test: bool) -> None:
    """Trace the lines of the program: the last one, and in a test each one."""

    def local(frame: FrameType, event: str, _: object) -> Any:
        if event == "line":
            line = frame.f_lineno
            executed[_HEADER + line] |= is_test
            executed[:_HEADER] = line.to_bytes(_HEADER, "little")
        return local

    sys.settrace(lambda frame, event, argument: local if frame.f_code.co_filename == FILE_NAME else None)


def _make_audit_hook(forbidden: list[list[Any]], readable: list[str]) -> Any:
    """Return an audit hook that records forbidden actions of the program and their lines."""
    allowed = (os.getcwd(), os.devnull, "/proc/self", *readable)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        action = _FORBIDDEN_EVENTS.get(event)
        if event == "open" and isinstance(arguments[0], str) and not _is_inside(arguments[0], allowed):
            writes = isinstance(arguments[1], str) and set(arguments[1]) & set("wax+")
            action = f"{'writes' if writes else 'reads'} the file {arguments[0][:200]!r}"
        if action is not None:
            stack = _stack_lines(sys._getframe())
            if stack:
                forbidden.append([action, stack[0]])

    return hook


def _is_inside(path: str, folders: tuple[str, ...]) -> bool:
    path = os.path.abspath(path)
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)


def _format_value(value: Any, convert: Callable[[Any], str] = repr) -> str:
    """Return a shortened text of a value; `convert` may run code of the program, which may raise anything."""
    try:
        text = convert(value)
    except BaseException as error:
        return f"<{type(value).__name__} that cannot be shown: {type(error).__name__}>"
    text = text.encode("utf-8", "replace").decode()  # unpaired surrogates
    return text if len(text) <= _MAX_VALUE else text[: _MAX_VALUE - 1] + "…"


if __name__ == "__main__":
    builtins.input = lambda *_: (_ for _ in ()).throw(EOFError("there is no input"))
    main()
