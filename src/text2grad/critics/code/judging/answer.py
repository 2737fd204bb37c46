"""The answer's process: loads the program, then evaluates what the judge asks for and replies with plain data.

Nothing here is protected from the program, which runs in the same interpreter: whatever it replaces, it can only make
this process say something else. It has no tests, and no descriptor but the socket to the judge.
"""

from __future__ import annotations

import _operator
import builtins
import io
import os
import sys
from functools import partial

from text2grad.critics.code.judging.wire import Decoder, Encoder, dump, receive, send

TYPE_CHECKING = False
if TYPE_CHECKING:
    import mmap
    from collections.abc import Callable
    from types import CodeType, FrameType, TracebackType
    from typing import Any

FILE_NAME = "<answer>"
LINE_HEADER = 4  # bytes of the number of the last executed line
MAX_STEPS = 200_000  # lines that a traced test may execute; it is repeated without tracing where they are not enough
_MAX_PRINTED = 1 << 16
_MAX_TEXT = 400  # characters
_FORBIDDEN_EVENTS = {
    "socket.connect": "opens a network connection",
    "socket.getaddrinfo": "looks up a network address",
    "socket.bind": "opens a network port",
    "subprocess.Popen": "starts another program",
    "os.system": "runs a shell command",
    "os.exec": "starts another program",
    "os.posix_spawn": "starts another program",
    "os.fork": "starts another process",
    "os.forkpty": "starts another process",
    "os.kill": "sends a signal to a process",
    "os.killpg": "sends a signal to a process",
}
_SPECIAL: dict[str, Callable[..., Any]] = {
    **{name: getattr(builtins, name) for name in ("len", "bool", "str", "repr", "iter", "next", "int", "float")},
    **{name: getattr(builtins, name) for name in ("abs", "round", "reversed", "hash", "format", "isinstance")},
    **{name: getattr(builtins, name) for name in ("issubclass", "dir", "getattr", "setattr", "delattr")},
    **{name: getattr(_operator, name) for name in ("getitem", "setitem", "delitem", "contains", "index")},
    **{name: getattr(_operator, name) for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul")},
    **{name: getattr(_operator, name) for name in ("and_", "or_", "xor", "lshift", "rshift", "neg", "pos", "invert")},
    **{name: getattr(_operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge", "iadd")},
    "enter": lambda manager: type(manager).__enter__(manager),
    "exit": lambda manager: type(manager).__exit__(manager, None, None, None),
}


def run(code: CodeType, fd: int, settings: dict[str, Any], lines: mmap.mmap, tracing: bool) -> None:
    """Load the program and serve the judge until it closes the socket. Never returns."""
    try:
        server = _Server(fd, lines if tracing else None, settings["readable"])
        server.serve(code, settings["names"], settings["imports"])
    finally:
        os._exit(1)


class _Printed(io.BytesIO):
    """What the program prints, as far as it is kept."""

    def write(self, data: Any) -> int:
        if self.tell() < _MAX_PRINTED:
            super().write(bytes(data[:_MAX_PRINTED]))
        return len(data)


class _Callback:
    """A function of the tests, called in the judge's process."""

    def __init__(self, server: _Server, number: int) -> None:
        self._server, self._number = server, number

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._server.call_back(self._number, args, kwargs)


class _Server:
    def __init__(self, fd: int, lines: mmap.mmap | None, readable: list[str]) -> None:
        self.fd, self.lines = fd, lines
        self.objects: list[Any] = []
        self.numbers: dict[int, int] = {}
        self.steps = 0
        self.forbidden: list[list[Any]] = []
        self.encoder, self.decoder = Encoder(self._refer), Decoder(self._resolve)
        self.printed = _Printed()
        sys.stdout = io.TextIOWrapper(self.printed, encoding="utf-8", errors="replace", write_through=True)
        builtins.input = _no_input
        sys.addaudithook(_make_audit_hook(self.forbidden, readable))

    def serve(self, code: CodeType, names: list[str], imports: str) -> None:
        module = type(sys)("answer")
        sys.modules["answer"] = sys.modules["__main__"] = module
        space = module.__dict__
        self._reply(lambda: self._load(code, space, names, imports), is_test=False)
        while (request := receive(self.fd)) is not None:
            operation, *parts = request
            if operation == "name":
                self._reply(partial(self._encode_name, module, parts[0]), is_test=False)
            elif operation == "call":
                self._call(*parts)
            else:
                self._operate(operation, parts)
        os._exit(0)

    def _encode_name(self, module: Any, name: str) -> Any:
        return self.encoder.encode(getattr(module, name))

    def _operate(self, operation: str, parts: list[Any]) -> None:
        values = [self.decoder.decode(part) for part in parts]
        self._reply(lambda: self.encoder.encode(_SPECIAL[operation](*values)))

    def _load(self, code: CodeType, space: dict[str, Any], names: list[str], imports: str) -> Any:
        exec(code, space)
        sys.settrace(None)
        for line in imports.splitlines():  # what the tests import serves the program as well
            try:
                exec(line, space)
            except ImportError:
                continue
        return {name: self.encoder.encode(space[name]) for name in names if name in space}

    def _call(self, function: Any, args: Any, kwargs: Any) -> None:
        target = self.decoder.decode(function)
        values, named = self.decoder.decode(args), self.decoder.decode(kwargs)
        mutable = [value for value in (*values, *named.values()) if not isinstance(value, int | str | float | None)]
        self._reply(
            lambda: self.encoder.encode(target(*values, **named)),
            after=lambda: [self.encoder.encode(values), self.encoder.encode(named)] if mutable else None,
            before=[args, kwargs],
        )

    def _reply(self, evaluate: Callable[[], Any], is_test: bool = True, after: Any = None, before: Any = None) -> None:
        reply: dict[str, Any] = {}
        try:
            if self.lines is not None:
                self._trace(is_test)
            reply["value"] = evaluate()
            sys.settrace(None)
        except BaseException as error:  # also SystemExit and KeyboardInterrupt
            sys.settrace(None)
            reply["raised"] = self._describe(error)
        changed = after() if after is not None else None
        if changed is not None and changed != before:
            reply["after"] = changed
        if self.printed.tell():
            reply["printed"] = self.printed.getvalue().decode("utf-8", "replace")
            self.printed.seek(0)
            self.printed.truncate()
        if self.forbidden:
            reply["forbidden"] = self.forbidden[0]
        send(self.fd, dump(reply))

    def call_back(self, number: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        send(self.fd, dump({"callback": [number, self.encoder.encode(list(args)), self.encoder.encode(kwargs)]}))
        reply = receive(self.fd)
        if reply is None:
            os._exit(0)
        if "raised" in reply:
            name, message = reply["raised"]
            kind = getattr(builtins, name, RuntimeError)
            raise (kind if isinstance(kind, type) and issubclass(kind, Exception) else RuntimeError)(message)
        return self.decoder.decode(reply["value"])

    def _refer(self, value: Any) -> Any:
        if id(value) not in self.numbers:
            self.numbers[id(value)] = len(self.objects)
            self.objects.append(value)
        number = self.numbers[id(value)]
        if type in type(value).__mro__ and issubclass(value, BaseException):
            return ["exception", number, [base.__name__ for base in value.__mro__]]
        return ["object", number, type(value).__name__[:100]]

    def _resolve(self, data: list[Any]) -> Any:
        tag, *parts = data
        if tag == "object":
            return self.objects[parts[0]]
        if tag == "callback":
            return _Callback(self, parts[0])
        if tag == "iterator":
            return iter(self.decoder.decode(parts[0]))
        if tag == "global":
            return getattr(__import__(parts[0], fromlist=["_"]), parts[1])
        raise ValueError(tag)

    def _trace(self, is_test: bool) -> None:
        """Trace the lines of the program: the last one, and in a test each one."""
        lines, limit, stop = self.lines, MAX_STEPS, self._stop
        assert lines is not None
        count = self.steps

        def local(frame: FrameType, event: str, _: object) -> Any:
            nonlocal count
            if event == "line":
                line = frame.f_lineno
                if is_test:
                    lines[LINE_HEADER + line] = 1
                lines[:LINE_HEADER] = line.to_bytes(LINE_HEADER, "little")
                count += 1
                if count > limit:
                    stop()
            else:
                self.steps = count
            return local

        sys.settrace(lambda frame, event, argument: local if frame.f_code.co_filename == FILE_NAME else None)

    def _stop(self) -> None:
        send(self.fd, dump({"steps": True}))
        os._exit(0)

    def _describe(self, error: BaseException) -> dict[str, Any]:
        frames = _traceback_extents(error.__traceback__)
        name = getattr(error, "name", None) if isinstance(error, ImportError | NameError | AttributeError) else None
        return {
            "type": self._refer(type(error)),
            "args": self.encoder.encode(list(error.args)),
            "message": _text(error),
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


def _make_audit_hook(forbidden: list[list[Any]], readable: list[str]) -> Any:
    """Return an audit hook that records forbidden actions of the program and their lines."""
    allowed = (os.getcwd(), os.devnull, "/proc/self", *readable)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        action = _FORBIDDEN_EVENTS.get(event)
        if event == "open" and isinstance(arguments[0], str) and not _is_inside(arguments[0], allowed):
            writes = isinstance(arguments[1], str) and set(arguments[1]) & set("wax+")
            action = f"{'writes' if writes else 'reads'} the file {arguments[0][:200]!r}"
        if action is not None:
            line = _innermost_line(sys._getframe())
            if line:
                forbidden.append([action, line])

    return hook


def _innermost_line(frame: FrameType | None) -> int:
    while frame is not None and frame.f_code.co_filename != FILE_NAME:
        frame = frame.f_back
    return frame.f_lineno if frame is not None else 0


def _is_inside(path: str, folders: tuple[str, ...]) -> bool:
    path = os.path.abspath(path)
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)


def _no_input(*_: object) -> str:
    raise EOFError("there is no input")


def _text(error: BaseException) -> str:
    try:
        text = str(error)
    except BaseException as other:  # code of the program, which may raise anything
        return f"<{type(error).__name__} that cannot be shown: {type(other).__name__}>"
    return text[:_MAX_TEXT]
