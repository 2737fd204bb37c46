"""Values as JSON, between the judge and the answer's process.

What a value decodes to is of an exact built-in or standard-library type, rebuilt from text. A subclass of a built-in
type is sent as the built-in value that it holds, so that its methods have no say. Anything else is a reference:
`encode` asks `refer` for its form, `decode` asks `resolve` for its stand-in.
"""

from __future__ import annotations

import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Json = Any

MAX_MESSAGE = 8 << 20  # bytes
MAX_DEPTH = 40
MAX_ITEMS = 200_000
_SHORT, _MAX_SHORT = 1024, 50  # parts of a message below 1 KB, and how many there may be
_HEADER = 4  # bytes of a message's length
_SMALL = 1 << 53  # larger integers travel as hexadecimal text, which has no limit on digits
_MAX_TEXT = 10_000  # characters of a number or date
_BUILT_IN: tuple[Any, ...] = (bool, int, float, str, list, tuple, dict, set, frozenset, bytes, bytearray, complex)
_ITERABLES: dict[Any, str] = {list: "list", tuple: "tuple", set: "set", frozenset: "frozenset"}
_TYPES: dict[str, Any] = {kind.__name__: kind for kind in (*_BUILT_IN, range, object, type, type(None))}
_VIEWS = {type({}.keys()): "keys", type({}.values()): "values", type({}.items()): "items"}
_MAPPINGS = ("Counter", "OrderedDict", "defaultdict")


class InvalidMessageError(Exception):
    """The other side sent something that is no message."""


class TooLargeError(Exception):
    """A value has too many items, or is nested too deeply, to be sent."""


class Encoder:
    """Converts values to JSON; `refer` returns the JSON of a value that is not plain data."""

    def __init__(self, refer: Callable[[Any], Json]) -> None:
        self._refer = refer
        self._remaining = 0

    def encode(self, value: Any) -> Json:
        """Return the value as JSON; a value that is too large is sent as a reference."""
        self._remaining = MAX_ITEMS
        try:
            return self._encode(value, 0)
        except TooLargeError:
            return self._refer(value)

    def _encode(self, value: Any, depth: int) -> Json:
        kind = type(value)
        if value is None or kind is bool:
            return value
        self._spend(1 if depth <= MAX_DEPTH else MAX_ITEMS + 1)
        if kind not in _BUILT_IN:
            found = self._standard(value, kind, depth)
            if found is not None:
                return found
            base = next((one for one in _BUILT_IN if one in type.__dict__["__mro__"].__get__(kind)), None)
            if base is None:
                return self._refer(value)
            kind = base
        return self._built_in(value, kind, depth)

    def _spend(self, items: int) -> None:
        self._remaining -= items
        if self._remaining < 0:
            raise TooLargeError

    def _built_in(self, value: Any, kind: Any, depth: int) -> Json:
        if kind is str:
            self._spend(str.__len__(value) // 8)
            return str.__str__(value)
        if kind is int:
            number = int.__int__(value)
            self._spend(number.bit_length() // 64)
            return number if -_SMALL < number < _SMALL else ["int", hex(number)]
        if kind is float:
            real = float.__float__(value)
            return real if real - real == 0 else ["float", repr(real)]
        if kind is dict:
            return ["dict", self._pairs(dict.items(value), depth)]
        if kind is complex:
            return ["complex", repr(complex.real.__get__(value)), repr(complex.imag.__get__(value))]
        if kind in (bytes, bytearray):
            self._spend(kind.__len__(value) // 8)
            return [kind.__name__, bytes(value).hex()]
        return [_ITERABLES[kind], self._items(kind.__iter__(value), depth)]

    def _items(self, values: Any, depth: int) -> list[Json]:
        return [self._encode(item, depth + 1) for item in values]

    def _pairs(self, pairs: Any, depth: int) -> list[Json]:
        return [[self._encode(key, depth + 1), self._encode(item, depth + 1)] for key, item in pairs]

    def _standard(self, value: Any, kind: type, depth: int) -> Json | None:
        """Return the JSON of a value of the standard library, None for any other."""
        if kind is range:
            return ["range", *map(hex, (value.start, value.stop, value.step))]
        if kind in _VIEWS:
            name = _VIEWS[kind]
            return [name, self._pairs(value, depth) if name == "items" else self._items(value, depth)]
        if kind is type and value in _TYPES.values():
            return ["type", value.__name__]
        collections = sys.modules.get("collections")
        for name in _MAPPINGS:
            if collections is not None and kind is getattr(collections, name):
                return [name, self._pairs(dict.items(value), depth)]
        if collections is not None and kind is collections.deque:
            return ["deque", self._items(value, depth)]
        if tuple in kind.__mro__ and type(fields := getattr(kind, "_fields", None)) is tuple:
            return ["namedtuple", kind.__name__, list(fields), self._items(tuple.__iter__(value), depth)]
        return _encode_number_or_date(value, kind)


def _encode_number_or_date(value: Any, kind: type) -> Json | None:
    module, name = kind.__module__, kind.__name__
    if getattr(sys.modules.get(module), name, None) is not kind:
        return None
    if module == "decimal" and name == "Decimal":
        return ["Decimal", str(value)]
    if module == "fractions" and name == "Fraction":
        return ["Fraction", hex(value.numerator), hex(value.denominator)]
    if module == "datetime" and name in ("date", "time", "datetime"):
        return [name, value.isoformat()]
    if module == "datetime" and name == "timedelta":
        return ["timedelta", value.days, value.seconds, value.microseconds]
    if module == "uuid" and name == "UUID":
        return ["UUID", value.hex]
    numpy = sys.modules.get("numpy")
    if numpy is not None and numpy.generic in kind.__mro__ and type(value.item()) in _BUILT_IN:
        return Encoder(lambda _: None).encode(value.item())
    return None


class Decoder:
    """Rebuilds values from JSON; `resolve` returns the stand-in of a reference, given its parts."""

    def __init__(self, resolve: Callable[[list[Json]], Any]) -> None:
        self._resolve = resolve
        self._named_tuples: dict[tuple[str, ...], Any] = {}

    def decode(self, data: Json) -> Any:
        """Return the value; raise InvalidMessageError for anything that `encode` would not have made."""
        try:
            return self._decode(data, 0)
        except InvalidMessageError:
            raise
        except Exception as error:  # whatever a malformed message breaks
            raise InvalidMessageError(f"{type(error).__name__} in a value") from None

    def _decode(self, data: Json, depth: int) -> Any:
        if data is None or type(data) in (bool, int, str):
            return data
        if type(data) is float and data - data == 0:
            return data
        if type(data) is not list or not data or type(data[0]) is not str or depth > MAX_DEPTH + 1:
            raise InvalidMessageError("a value of unknown form")
        tag, *parts = data
        if tag in ("list", "tuple", "set", "frozenset"):
            return _TYPES[tag](self._items(_one(parts), depth))
        if tag == "dict":
            return self._pairs(_one(parts), depth)
        simple = _SIMPLE.get(tag)
        if simple is not None:
            return simple(*parts)
        if tag in _MAPPINGS or tag in ("deque", "keys", "values", "items", "namedtuple"):
            return self._collection(tag, parts, depth)
        return self._resolve(data)

    def _items(self, items: list[Json], depth: int) -> list[Any]:
        return [self._decode(item, depth + 1) for item in _checked(items, list)]

    def _pairs(self, pairs: list[Json], depth: int) -> dict[Any, Any]:
        return {self._decode(key, depth + 1): self._decode(item, depth + 1) for key, item in _checked(pairs, list)}

    def _collection(self, tag: str, parts: list[Json], depth: int) -> Any:
        import collections

        if tag == "defaultdict":
            return collections.defaultdict(None, self._pairs(_one(parts), depth))
        if tag in _MAPPINGS:
            return getattr(collections, tag)(self._pairs(_one(parts), depth))
        if tag == "items":
            return self._pairs(_one(parts), depth).items()
        if tag == "namedtuple":
            name, fields, items = parts
            key = (name, *_checked(fields, list))
            if key not in self._named_tuples:
                self._named_tuples[key] = collections.namedtuple(_checked(name, str), fields)
            return self._named_tuples[key](*self._items(items, depth))
        values = self._items(_one(parts), depth)
        if tag == "keys":
            return dict.fromkeys(values).keys()
        return dict(enumerate(values)).values() if tag == "values" else collections.deque(values)


def _checked(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise InvalidMessageError(f"a {type(value).__name__} instead of a {kind.__name__}")
    return value


def _one(parts: list[Json]) -> Json:
    (part,) = parts
    return part


def _integer(text: Json) -> int:
    return int(_checked(text, str), 16)


def _short(text: Json) -> str:
    if len(_checked(text, str)) > _MAX_TEXT:
        raise InvalidMessageError("a number or date that is too long")
    return str(text)


def _standard_type(module: str, name: str) -> Any:
    return getattr(__import__(module), name)


_SIMPLE: dict[str, Callable[..., Any]] = {
    "int": _integer,
    "float": lambda text: float(_short(text)),
    "complex": lambda real, imaginary: complex(float(_short(real)), float(_short(imaginary))),
    "bytes": lambda text: bytes.fromhex(_checked(text, str)),
    "bytearray": lambda text: bytearray.fromhex(_checked(text, str)),
    "range": lambda *bounds: range(*map(_integer, bounds)),
    "type": lambda name: _TYPES[name],
    "Decimal": lambda text: _standard_type("decimal", "Decimal")(_short(text)),
    "Fraction": lambda *parts: _standard_type("fractions", "Fraction")(*map(_integer, parts)),
    "date": lambda text: _standard_type("datetime", "date").fromisoformat(_short(text)),
    "time": lambda text: _standard_type("datetime", "time").fromisoformat(_short(text)),
    "datetime": lambda text: _standard_type("datetime", "datetime").fromisoformat(_short(text)),
    "timedelta": lambda *parts: _standard_type("datetime", "timedelta")(*(_checked(part, int) for part in parts)),
    "UUID": lambda text: _standard_type("uuid", "UUID")(_short(text)),
}


def dump(message: Json) -> bytes:
    """Return a message for `send`."""
    data = json.dumps(message, separators=(",", ":")).encode()
    return len(data).to_bytes(_HEADER, "little") + data


def send(fd: int, data: bytes, wait: Callable[[int], None] | None = None) -> None:
    """Write all of `data`. `wait` returns once there is room to write."""
    view = memoryview(data)
    while view:
        if wait is not None:
            wait(fd)
        view = view[os.write(fd, view) :]


def receive(fd: int, wait: Callable[[int], None] | None = None) -> Json | None:
    """Read a message; None at the end of the stream. `wait` returns once there is something to read."""
    header = _read(fd, _HEADER, wait)
    size = int.from_bytes(header, "little")
    if len(header) < _HEADER:
        return None
    if size > MAX_MESSAGE:
        raise InvalidMessageError("a message that is too large")
    data = _read(fd, size, wait)
    if len(data) < size:
        return None
    try:
        return json.loads(data)
    except (ValueError, RecursionError, MemoryError) as error:
        raise InvalidMessageError("a message that is not JSON") from error


def _read(fd: int, size: int, wait: Callable[[int], None] | None) -> bytes:
    data = bytearray()
    num_short = 0
    while len(data) < size:
        if wait is not None:
            wait(fd)
        try:
            chunk = os.read(fd, min(size - len(data), 1 << 16))
        except ConnectionResetError:
            chunk = b""
        if not chunk:
            break
        data += chunk
        num_short += len(chunk) < _SHORT
        if num_short > _MAX_SHORT:
            raise InvalidMessageError("a message in many small parts")
    return bytes(data)
