"""The judge's side of one process of the answer: requests, replies, time limits, and stand-ins for its objects."""

from __future__ import annotations

import builtins
import os
import select
import sys
import time

from text2grad.critics.code.judging.wire import Decoder, Encoder, InvalidMessage, dump, receive, send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_TICK = 0.02  # seconds between two looks at the answer's process
_MAX_CALLBACKS = 10_000
_MAX_ITERATED = 10_000  # items of an iterator that a test passes to the answer
_FIELDS = {"value", "raised", "after", "printed", "forbidden", "callback", "steps"}
_MUTABLE = (list, dict, set, bytearray)
_ITERATORS = tuple(type(one) for one in (iter([]), iter(()), iter({}), iter(set()), iter(range(0)), iter(""), zip(), enumerate([]), map(str, []), (_ for _ in [])))  # fmt: skip  # noqa: E501
_EXCEPTIONS = {
    name: kind
    for name, kind in vars(builtins).items()
    if type(kind) is type and issubclass(kind, BaseException)
}


class AnswerEnded(BaseException):
    """The answer's process gives no more replies: it "died", or was stopped at a limit ("timeout", "idle", "steps")."""


class Unsupported(BaseException):
    """The tests do something that cannot be done across processes."""


class Call:
    """A call of the answer's code with plain arguments: what was called, with what, and what it did."""

    def __init__(self, label: str, function: list[Any], args: list[Any], kwargs: list[Any]) -> None:
        self.label, self.function, self.args, self.kwargs = label, function, args, kwargs
        self.behaviour = ""
        self.raised = False


class Session:
    """Talks to one process of the answer."""

    def __init__(self, fd: int, pid: int, seconds: float) -> None:
        self.fd = fd
        self.ended: str | None = None
        self.invalid: str | None = None
        self.unsupported: str | None = None
        self.forbidden: list[Any] | None = None
        self.calls: list[Call] = []
        self.num_requests = 0
        self.seconds = seconds
        self._watch = _Watch(pid, fd)
        self._callbacks: list[Callable[..., Any]] = []
        self._num_callbacks = 0
        self._stand_ins: dict[int, Any] = {}
        self._raised: list[tuple[BaseException, dict[str, Any]]] = []
        self._encoder, self._decoder = Encoder(self._refer), Decoder(self._resolve)

    def close(self) -> None:
        """Close the connection."""
        os.close(self.fd)

    def load(self) -> dict[str, Any]:
        """Wait until the program is loaded; return the names that the tests use."""
        names = self._receive(None)
        return {str(name): self.decode(value) for name, value in _dictionary(names).items()}

    def request(self, operation: str, *values: Any) -> Any:
        """Evaluate an operation in the answer's process."""
        self.num_requests += 1
        self._send([operation, *map(self._encode, values)])
        return self.decode(self._receive(None))

    def name(self, name: str) -> Any:
        """Return a name that the program defines."""
        self._send(["name", name])
        return self.decode(self._receive(None))

    def call(self, label: str, function: Remote, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function of the answer. Lists, dictionaries and sets that it changes are changed here as well."""
        self.num_requests += 1
        call = Call(label, self._encode(function), self._encode(list(args)), self._encode(kwargs))
        if len(self.calls) < 100:
            self.calls.append(call)
        self._send(["call", call.function, call.args, call.kwargs])
        value = self._receive([list(args), kwargs], call)
        return self.decode(value)

    def behaviour(self, call: Call, args: list[Any]) -> str:
        """Repeat a call with other arguments and return what it does, without raising what it raises."""
        probe = Call(call.label, call.function, self._encode(args), call.kwargs)
        self._send(["call", probe.function, probe.args, probe.kwargs])
        try:
            self._receive(None, probe)
        except Exception:  # noqa: S110  part of the behaviour
            pass
        return probe.behaviour

    def plain_arguments(self, call: Call) -> list[Any] | None:
        """Return the arguments of a call as values; None if there are none, or some are not plain data."""
        text = repr(call.args)
        if not call.args[1] or any(f"['{tag}', " in text for tag in ("object", "callback", "global", "iterator")):
            return None
        found: list[Any] = self._decoder.decode(call.args)
        return found

    def description(self, error: BaseException) -> dict[str, Any] | None:
        """Return what the answer's process said about an exception that it raised."""
        return next((text for known, text in self._raised if known is error), None)

    def decode(self, data: Any) -> Any:
        """Return a value that the answer's process sent."""
        try:
            return self._decoder.decode(data)
        except InvalidMessage as error:
            self._end_invalid(error)

    def _end_invalid(self, error: Exception) -> Any:
        self.invalid = str(error) if type(error) is InvalidMessage else f"a reply that causes {type(error).__name__}"
        self._end("invalid")

    def _send(self, message: Any) -> None:
        if self.ended is not None:
            raise AnswerEnded(self.ended)
        try:
            send(self.fd, dump(message))
        except OSError:
            self._end("died")

    def _end(self, reason: str) -> Any:
        self.ended = reason
        raise AnswerEnded(reason) from None

    def _receive(self, arguments: list[Any] | None, call: Call | None = None) -> Any:
        """Return the value of the reply as JSON, or raise its exception; run callbacks until it comes."""
        try:
            while "callback" in (reply := self._next_reply()):
                self._run_callback(*reply["callback"])
            value, error = self._accept(reply, arguments, call)
        except Exception as problem:  # whatever a malformed reply breaks
            self._end_invalid(problem)
        if "printed" in reply:
            sys.stdout.write(reply["printed"].encode("utf-8", "replace").decode())
        if error is not None:
            raise error
        return value

    def _next_reply(self) -> dict[str, Any]:
        try:
            reply = receive(self.fd, self._wait)
        except OSError:
            reply = None
        if reply is None or (type(reply) is dict and "steps" in reply):
            self._end("died" if reply is None else "steps")
        if not _FIELDS.issuperset(_dictionary(reply)):
            raise InvalidMessage("a reply with unknown fields")
        return _dictionary(reply)

    def _accept(
        self, reply: dict[str, Any], arguments: list[Any] | None, call: Call | None
    ) -> tuple[Any, BaseException | None]:
        if type(reply.get("printed", "")) is not str:
            raise InvalidMessage("printed text that is not text")
        if call is not None:
            call.behaviour = _behaviour(reply)
            call.raised = "raised" in reply
        if "forbidden" in reply:
            action, line = reply["forbidden"]
            if type(action) is not str or type(line) is not int:
                raise InvalidMessage("a forbidden action of unknown form")
            self.forbidden = self.forbidden or [action[:300], line]
        if arguments is not None and "after" in reply:
            for old, new in zip(arguments, reply["after"], strict=True):
                _copy_into(old, self._decoder.decode(new))
        if "raised" in reply:
            return None, self._exception(_dictionary(reply["raised"]))
        return reply["value"], None

    def _wait(self, fd: int) -> None:
        limit = self._watch.wait(self.seconds)
        if limit is not None:
            self._end(limit)

    def _run_callback(self, number: int, args: Any, kwargs: Any) -> None:
        self._num_callbacks += 1
        if type(number) is not int or not 0 <= number < len(self._callbacks) or self._num_callbacks > _MAX_CALLBACKS:
            raise InvalidMessage("a call of a function that was not passed")
        values, named = self._decoder.decode(args), self._decoder.decode(kwargs)
        try:
            reply = {"value": self._encode(self._callbacks[number](*values, **named))}
        except Exception as error:
            reply = {"raised": [type(error).__name__, str(error)[:1000]]}
        self._send(reply)

    def _exception(self, description: dict[str, Any]) -> BaseException:
        kind = self._decoder.decode(description["type"])
        args = self._decoder.decode(description["args"])
        message = description["message"]
        if not (type(kind) is type and issubclass(kind, BaseException)) or type(args) is not list:
            raise InvalidMessage("an exception of unknown form")
        if type(message) is not str:
            raise InvalidMessage("a message of an exception that is not text")
        try:
            error = kind(*args)
        except Exception:
            error = type(kind.__name__, (kind,), {"__init__": lambda self: None, "__str__": lambda self: message})()
        self._raised.append((error, {**description, "bases": [base.__name__ for base in kind.__mro__]}))
        return error

    def _encode(self, value: Any) -> Any:
        return self._encoder.encode(value)

    def _refer(self, value: Any) -> Any:
        """Return the JSON of an argument that is not plain data: an object of the answer, or a function of the tests."""
        kind = type(value)
        if kind is Remote:
            return ["object", _number(value)]
        for number, stand_in in self._stand_ins.items():
            if stand_in is value:
                return ["object", number]
        if kind in _ITERATORS:
            items = [item for item, _ in zip(value, range(_MAX_ITERATED), strict=False)]
            return ["iterator", self._encode(items)]
        module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
        module = "builtins" if kind is type(len) and module is None else module
        if type(module) is str and type(name) is str and module.partition(".")[0] in sys.stdlib_module_names:
            if getattr(sys.modules.get(module), name, None) is value:
                return ["global", module, name]
        if kind in (type(_dictionary), type(self._encode), type(len)) or kind.__name__ == "partial":
            self._callbacks.append(value)
            return ["callback", len(self._callbacks) - 1]
        self.unsupported = f"they pass an object of type {kind.__name__!r} to the answer"
        raise Unsupported(self.unsupported)

    def _resolve(self, data: list[Any]) -> Any:
        tag, *parts = data
        number = parts[0]
        if type(number) is not int or number < 0:
            raise InvalidMessage("an object without a number")
        if number not in self._stand_ins:
            if tag == "exception":
                self._stand_ins[number] = _exception_class(parts[1])
            elif tag == "object" and type(parts[1]) is str:
                self._stand_ins[number] = Remote(self, number, parts[1])
            else:
                raise InvalidMessage(f"a value of unknown form {tag[:20]!r}")
        return self._stand_ins[number]


def _exception_class(bases: Any) -> type[BaseException]:
    """Return the built-in class of that name, or a class of that name below the nearest built-in one."""
    if type(bases) is not list or not bases or any(type(name) is not str for name in bases):
        raise InvalidMessage("an exception of unknown form")
    base = next((_EXCEPTIONS[name] for name in bases if name in _EXCEPTIONS), Exception)
    return base if bases[0] == base.__name__ else type(bases[0][:100], (base,), {})


def _dictionary(value: Any) -> dict[str, Any]:
    if type(value) is not dict:
        raise InvalidMessage(f"a {type(value).__name__} instead of a dictionary")
    return value


def _behaviour(reply: dict[str, Any]) -> str:
    """Return what a call did, in a form that is equal for equal behaviour."""
    value = reply.get("value")
    if type(value) is list and value[:1] == ["object"]:
        value = ["object", *value[2:]]
    raised = reply.get("raised")
    kind = raised.get("type") if type(raised) is dict else None
    text = repr((value, kind, reply.get("after"), reply.get("printed")))
    return text if len(text) < 1000 else f"{text[:1000]}{len(text)}{hash(text)}"


def _copy_into(old: Any, new: Any) -> Any:
    """Give `old` the contents of `new`, inner containers included; return `new` where that is impossible."""
    if type(old) is not type(new) or type(old) not in _MUTABLE:
        return new
    if type(old) is list:
        old[:] = [_copy_into(*pair) for pair in zip(old, new)] + new[len(old) :]  # noqa: B905
    elif type(old) is dict:
        merged = {key: _copy_into(old[key], item) if key in old else item for key, item in new.items()}
        old.clear()
        old.update(merged)
    elif type(old) is set:
        old.clear()
        old.update(new)
    else:
        old[:] = new
    return old


class _Watch:
    """Waits for the answer's process, for as long as it may run.

    Its processor time counts, and the time for which it is blocked; not the time for which it waits for a processor,
    so that the outcome does not depend on what else the machine is doing.
    """

    def __init__(self, pid: int, fd: int) -> None:
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)
        self._clock = (~pid << 3) | 2  # the kernel's number of that process's CPU clock
        self._status = f"/proc/{pid}/stat"
        self._blocked = 0.0
        self._last = time.monotonic()

    def wait(self, seconds: float) -> str | None:
        """Return None once there is something to read; "timeout" or "idle" at a limit, "died" at its end."""
        while True:
            if self._poll.poll(int(1000 * _TICK)):
                self._last = time.monotonic()
                return None
            limit = self._look(seconds)
            if limit is not None:
                return limit

    def _look(self, seconds: float) -> str | None:
        now = time.monotonic()
        try:
            cpu = time.clock_gettime(self._clock)
            with open(self._status, "rb") as status:
                state = status.read().rpartition(b")")[2].split()[0]
        except OSError:
            state = b"Z"
        if state in (b"Z", b"X"):
            return None if self._poll.poll(0) else "died"
        if state in (b"S", b"T", b"t"):
            self._blocked += min(now - self._last, 2 * _TICK)
        self._last = now
        if cpu > seconds:
            return "timeout"
        return "idle" if self._blocked > seconds else None


class Remote:
    """An object of the answer. It can be used as there, but it equals nothing that the tests have."""

    def __init__(self, session: Session, number: int, kind: str, label: str = "") -> None:
        for name, value in (("session", session), ("number", number), ("kind", kind), ("label", label)):
            object.__setattr__(self, f"_remote_{name}", value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _session(self).call(object.__getattribute__(self, "_remote_label"), self, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        found = _session(self).request("getattr", self, name)
        if type(found) is Remote:
            object.__setattr__(found, "_remote_label", name)
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        _session(self).request("setattr", self, name, value)

    def __delattr__(self, name: str) -> None:
        _session(self).request("delattr", self, name)

    def __instancecheck__(self, instance: Any) -> bool:
        return type(instance) is Remote and _checked(_session(self).request("isinstance", instance, self), bool)

    def __subclasscheck__(self, subclass: Any) -> bool:
        return type(subclass) is Remote and _checked(_session(self).request("issubclass", subclass, self), bool)

    def __hash__(self) -> int:
        return object.__hash__(self)

    def __mro_entries__(self, bases: Any) -> Any:
        session = _session(self)
        session.unsupported = "they define a subclass of a class of the answer"
        raise Unsupported(session.unsupported)

    def __exit__(self, *_: object) -> None:
        _session(self).request("exit", self)


def _session(remote: Remote) -> Session:
    found: Session = object.__getattribute__(remote, "_remote_session")
    return found


def _number(remote: Remote) -> int:
    found: int = object.__getattribute__(remote, "_remote_number")
    return found


def set_label(value: Any, label: str) -> None:
    """Name an object of the answer."""
    if type(value) is Remote:
        object.__setattr__(value, "_remote_label", label)


def _checked(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise TypeError(f"a {kind.__name__} is needed, not a {type(value).__name__}")
    return value


def _operation(operation: str, kind: type | None = None, swapped: bool = False) -> Callable[..., Any]:
    def method(self: Remote, *values: Any) -> Any:
        operands = (*values, self) if swapped else (self, *values)
        found = _session(self).request(operation, *operands)
        return found if kind is None else _checked(found, kind)

    return method


def _comparison(operation: str) -> Callable[..., Any]:
    def method(self: Remote, other: Any) -> Any:
        if self is other:
            return operation in ("eq", "le", "ge")
        if type(other) is Remote:
            return _checked(_session(self).request(operation, self, other), bool)
        kind = object.__getattribute__(self, "_remote_kind")
        raise TypeError(f"the answer gives an object of type {kind!r}, which cannot be compared with plain data")

    return method


for _name, _kind in {"len": int, "bool": bool, "str": str, "repr": str, "int": int, "float": float, "index": int, "format": str}.items():  # fmt: skip  # noqa: E501
    setattr(Remote, f"__{_name}__", _operation(_name, _kind))
for _name in ("iter", "next", "getitem", "setitem", "delitem", "abs", "round", "reversed", "neg", "pos", "invert", "iadd", "enter"):  # fmt: skip  # noqa: E501
    setattr(Remote, f"__{_name}__", _operation(_name))
for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor", "lshift", "rshift"):  # fmt: skip  # noqa: E501
    setattr(Remote, f"__{_name.rstrip('_')}__", _operation(_name))
    setattr(Remote, f"__r{_name.rstrip('_')}__", _operation(_name, swapped=True))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Remote, f"__{_name}__", _comparison(_name))
Remote.__contains__ = _operation("contains", bool)  # type: ignore[attr-defined]
