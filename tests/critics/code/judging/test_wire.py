"""Values that cross from the answer's process to the judge."""

# ruff: noqa: E501  one case per line

from __future__ import annotations

import collections
import datetime
import decimal
import fractions
import json
import os
from typing import Any

import pytest

from text2grad.critics.code.judging.wire import MAX_MESSAGE, Decoder, Encoder, InvalidMessageError, dump, receive


def refer(value: Any) -> Any:
    return ["object", 0, type(value).__name__]


def resolve(data: list[Any]) -> Any:
    return ("stand-in", data[2])


def travel(value: Any) -> Any:
    return Decoder(resolve).decode(json.loads(json.dumps(Encoder(refer).encode(value))))


Point = collections.namedtuple("Point", "x y")


@pytest.mark.parametrize(
    "value",
    [
        None, True, 0, -7, 1 << 200, -(1 << 60), 0.1, -0.0, float("inf"), "", "é\ud800", b"\x00\xff", bytearray(b"a"), 2 + 3j,
        [], [1, [2.5, "x"]], (1,), ((), [()]), {1, 2}, frozenset({"a"}), {1: "a", (2, 3): [4]}, range(2, 9, 3), int,
        collections.Counter("aab"), collections.OrderedDict(a=1), collections.deque([1, 2]), collections.defaultdict(None, {1: 2}),
        decimal.Decimal("1.10"), fractions.Fraction(1, 3), datetime.date(2024, 2, 29), datetime.timedelta(days=1, seconds=2),
        datetime.datetime(2024, 1, 2, 3, 4, 5, 6), Point(1, 2),
    ],
)  # fmt: skip
def test_plain_values_arrive_as_they_are(value: Any) -> None:
    found = travel(value)
    assert found == value
    assert type(found) is type(value) or type(value) is Point
    assert repr(found) == repr(value)


def test_not_a_number_and_views() -> None:
    assert repr(travel(float("nan"))) == "nan"
    assert travel({1: 2}.keys()) == {1}
    assert travel({1: 2}.items()) == {(1, 2)}
    assert list(travel({1: 2}.values())) == [2]


class Liar(int):
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __int__(self) -> int:
        return 42

    def __index__(self) -> int:
        return 42

    def __repr__(self) -> str:
        return "42"


def test_a_subclass_is_the_built_in_value_that_it_holds() -> None:
    assert type(travel(Liar(3))) is int
    assert travel(Liar(3)) == 3
    assert travel([Liar(3)]) == [3]
    text = type("Text", (str,), {"__eq__": lambda *_: True, "__hash__": str.__hash__, "__str__": lambda _: "no"})("yes")
    assert travel(text) == "yes"
    assert type(travel(text)) is str


def test_what_is_not_plain_data_is_a_reference() -> None:
    assert travel(object()) == ("stand-in", "object")
    assert travel(len) == ("stand-in", "builtin_function_or_method")
    assert travel([object()]) == [("stand-in", "object")]


def test_cyclic_deep_and_large_values_are_references() -> None:
    cyclic: list[Any] = []
    cyclic.append(cyclic)
    deep: list[Any] = []
    for _ in range(1000):
        deep = [deep]
    for value in (cyclic, deep, [0] * 1_000_000, "x" * 10_000_000):
        assert travel(value) == ("stand-in", type(value).__name__)


@pytest.mark.parametrize(
    "data",
    [
        {}, [], [1], {"value": 1}, ["list"], ["list", 3], ["list", [], []], ["dict", [[["list", []], 1]]], ["int", 5], ["int", "x"],
        ["range", "0x1", "0x5", "0x0"], ["type", "os"], ["type", []], ["Decimal", "x"], ["Decimal", "1" * 100_000], ["date", "x"],
        ["bytes", "xyz"], ["complex", "1"], ["namedtuple", "T", ["a b"], [1]], ["namedtuple", "T", ["a"], []],
        ["namedtuple", "T", "ab", [1, 2]], ["timedelta", 1.5, 0, 0], ["timedelta", 10**12, 0, 0], ["Fraction", "0x1", "0x0"],
        ["float", "x"], float("nan"), ["set", [["list", []]]],
    ],
)  # fmt: skip
def test_anything_else_is_refused(data: Any) -> None:
    with pytest.raises(InvalidMessageError):
        Decoder(resolve).decode(data)


def send_and_receive(data: bytes) -> Any:
    reader, writer = os.pipe()
    try:
        os.write(writer, data)
        os.close(writer)
        return receive(reader)
    finally:
        os.close(reader)


def test_messages() -> None:
    assert send_and_receive(dump({"value": [1]})) == {"value": [1]}
    assert send_and_receive(b"") is None
    assert send_and_receive(dump([1])[:-1]) is None
    for data in (b"\x02\x00\x00\x00{]", (MAX_MESSAGE + 1).to_bytes(4, "little"), b"\x01\x00\x00\x00\xff"):
        with pytest.raises(InvalidMessageError):
            send_and_receive(data)
