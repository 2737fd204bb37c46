"""The judge's side of one process of the answer: requests, replies, time limits, and stand-ins for its objects."""

from __future__ import annotations

import builtins
import os
import sys
from contextlib import suppress

from text2grad.critics.code.judging.remote import Remote, number_of
from text2grad.critics.code.judging.watch import Watch
from text2grad.critics.code.judging.wire import Decoder, Encoder, InvalidMessageError, dump, receive, send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_MAX_CALLBACKS = 10_000
_MAX_ITERATED = 10_000  # items of an iterator that a test passes to the answer
_FIELDS = {"value", "raised", "after", "printed", "forbidden", "callback", "steps"}
_MUTABLE = (list, dict, set, bytearray)
_ITERABLES: tuple[Any, ...] = ([], (), {}, set(), range(0), "")
_ITERATORS = {*(type(iter(one)) for one in _ITERABLES), zip, enumerate, map, filter, type(_ for _ in ())}
_EXCEPTIONS = {
    name: kind for name, kind in vars(builtins).items() if type(kind) is type and issubclass(kind, BaseException)
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
        self._watch = Watch(pid, fd)
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

    def probe(self, call: Call, args: list[Any]) -> Call:
        """Repeat a call with other arguments, without raising what it raises."""
        probe = Call(call.label, call.function, self._encode(args), call.kwargs)
        self._send(["call", probe.function, probe.args, probe.kwargs])
        with suppress(Exception):  # what it raises is part of what it does
            self._receive(None, probe)
        return probe

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
        except InvalidMessageError as error:
            self._end_invalid(error)

    def _end_invalid(self, error: Exception) -> Any:
        self.invalid = (
            str(error) if type(error) is InvalidMessageError else f"a reply that causes {type(error).__name__}"
        )
        self._end("invalid")

    def _send(self, message: Any) -> None:
        if self.ended is not None:
            raise AnswerEnded(self.ended)
        try:
            send(self.fd, dump(message), self._wait_to_write)
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
            raise InvalidMessageError("a reply with unknown fields")
        return _dictionary(reply)

    def _accept(
        self, reply: dict[str, Any], arguments: list[Any] | None, call: Call | None
    ) -> tuple[Any, BaseException | None]:
        if type(reply.get("printed", "")) is not str:
            raise InvalidMessageError("printed text that is not text")
        if call is not None:
            call.behaviour = _behaviour(reply)
            call.raised = "raised" in reply
        if "forbidden" in reply:
            action, line = reply["forbidden"]
            if type(action) is not str or type(line) is not int:
                raise InvalidMessageError("a forbidden action of unknown form")
            self.forbidden = self.forbidden or [action[:300], line]
        if arguments is not None and "after" in reply:
            for old, new in zip(arguments, reply["after"], strict=True):
                _copy_into(old, self._decoder.decode(new))
        if "raised" in reply:
            return None, self._exception(_dictionary(reply["raised"]))
        return reply["value"], None

    def _wait_to_write(self, fd: int) -> None:
        limit = self._watch.wait(self.seconds, writing=True)
        if limit is not None:
            self._end(limit)

    def _wait(self, fd: int) -> None:
        limit = self._watch.wait(self.seconds)
        if limit is not None:
            self._end(limit)

    def _run_callback(self, number: int, args: Any, kwargs: Any) -> None:
        self._num_callbacks += 1
        if type(number) is not int or not 0 <= number < len(self._callbacks) or self._num_callbacks > _MAX_CALLBACKS:
            raise InvalidMessageError("a call of a function that was not passed")
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
            raise InvalidMessageError("an exception of unknown form")
        if type(message) is not str:
            raise InvalidMessageError("a message of an exception that is not text")
        try:
            error = kind(*args)
        except Exception:
            error = type(kind.__name__, (kind,), {"__init__": lambda self: None, "__str__": lambda self: message})()
        self._raised.append((error, {**description, "bases": [base.__name__ for base in kind.__mro__]}))
        return error

    def _encode(self, value: Any) -> Any:
        return self._encoder.encode(value)

    def _refer(self, value: Any) -> Any:
        """Return the JSON of an argument that is not plain data: an object of the answer, a function of the tests."""
        kind = type(value)
        if kind is Remote:
            return ["object", number_of(value)]
        for number, stand_in in self._stand_ins.items():
            if stand_in is value:
                return ["object", number]
        if kind in _ITERATORS:
            items = [item for item, _ in zip(value, range(_MAX_ITERATED), strict=False)]
            return ["iterator", self._encode(items)]
        module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
        module = "builtins" if kind is type(len) and module is None else module
        is_standard = str(module).partition(".")[0] in sys.stdlib_module_names
        if is_standard and type(name) is str and getattr(sys.modules.get(str(module)), name, None) is value:
            return ["global", module, name]
        if kind in (type(_dictionary), type(self._encode), type(len)) or kind.__name__ == "partial":
            self._callbacks.append(value)
            return ["callback", len(self._callbacks) - 1]
        return self.refuse(f"they pass an object of type {kind.__name__!r} to the answer")

    def refuse(self, reason: str) -> Any:
        """End a test that cannot be run across processes."""
        self.unsupported = reason
        raise Unsupported(reason)

    def _resolve(self, data: list[Any]) -> Any:
        tag, *parts = data
        number = parts[0]
        if type(number) is not int or number < 0:
            raise InvalidMessageError("an object without a number")
        if number not in self._stand_ins:
            if tag == "exception":
                self._stand_ins[number] = _exception_class(parts[1])
            elif tag == "object" and type(parts[1]) is str:
                self._stand_ins[number] = Remote(self, number, parts[1])
            else:
                raise InvalidMessageError(f"a value of unknown form {tag[:20]!r}")
        return self._stand_ins[number]


def _exception_class(bases: Any) -> type[BaseException]:
    """Return the built-in class of that name, or a class of that name below the nearest built-in one."""
    if type(bases) is not list or not bases or any(type(name) is not str for name in bases):
        raise InvalidMessageError("an exception of unknown form")
    base = next((_EXCEPTIONS[name] for name in bases if name in _EXCEPTIONS), Exception)
    return base if bases[0] == base.__name__ else type(bases[0][:100], (base,), {})


def _dictionary(value: Any) -> dict[str, Any]:
    if type(value) is not dict:
        raise InvalidMessageError(f"a {type(value).__name__} instead of a dictionary")
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
