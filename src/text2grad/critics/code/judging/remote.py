"""Stand-ins in the tests for objects of the answer."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_TYPED = {"len": int, "bool": bool, "str": str, "repr": str, "int": int, "float": float, "index": int, "format": str}
_UNTYPED = "iter next getitem setitem delitem abs round reversed neg pos invert iadd enter"
_BINARY = "add sub mul truediv floordiv mod pow matmul and_ or_ xor lshift rshift"
_COMPARISONS = "eq ne lt le gt ge"


class Remote:
    """An object of the answer. It can be used as there, but it equals nothing that the tests have."""

    def __init__(self, session: Any, number: int, kind: str, label: str = "") -> None:
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
        return type(instance) is Remote and _session(self).request("isinstance", instance, self) is True

    def __subclasscheck__(self, subclass: Any) -> bool:
        return type(subclass) is Remote and _session(self).request("issubclass", subclass, self) is True

    def __hash__(self) -> int:
        return object.__hash__(self)

    def __mro_entries__(self, bases: Any) -> Any:
        _session(self).refuse("they define a subclass of a class of the answer")

    def __exit__(self, *_: object) -> None:
        _session(self).request("exit", self)


def _session(remote: Remote) -> Any:
    return object.__getattribute__(remote, "_remote_session")


def number_of(remote: Remote) -> int:
    """Return the number by which the answer's process knows an object."""
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


for _name, _kind in _TYPED.items():
    setattr(Remote, f"__{_name}__", _operation(_name, _kind))
for _name in _UNTYPED.split():
    setattr(Remote, f"__{_name}__", _operation(_name))
for _name in _BINARY.split():
    setattr(Remote, f"__{_name.rstrip('_')}__", _operation(_name))
    setattr(Remote, f"__r{_name.rstrip('_')}__", _operation(_name, swapped=True))
for _name in _COMPARISONS.split():
    setattr(Remote, f"__{_name}__", _comparison(_name))
setattr(Remote, "__contains__", _operation("contains", bool))  # noqa: B010
