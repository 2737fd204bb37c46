"""Other arguments for a call, to see whether its result depends on them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MIN_PROBES = 3  # with fewer, nothing is known
_NUM_VARIANTS = 8


def variants(arguments: list[Any]) -> list[list[Any]]:
    """Return lists of arguments of the same types with other values, those of the call itself excluded."""
    found: list[list[Any]] = []
    for number in range(_NUM_VARIANTS):
        variant = [_vary(argument, number) for argument in arguments]
        if variant != arguments and variant not in found:
            found.append(variant)
    for index, argument in enumerate(arguments):
        for number in range(3):
            variant = [*arguments[:index], _vary(argument, number), *arguments[index + 1 :]]
            if variant != arguments and variant not in found:
                found.append(variant)
    return found


def _vary(value: Any, number: int) -> Any:
    kind = type(value)
    if kind is bool:
        return (not value) if number % 2 == 0 else value
    if kind is int:
        return (value + 1, value - 1, -value, 0, value + 2, 2 * value + 3, value // 2, value + 7)[number]
    if kind is float:
        return (value + 1.5, -value, 0.0, value / 3, value + 0.25, 2 * value, value - 4, 1.0)[number]
    if kind is str:
        half = len(value) // 2
        return (f"{value}a", value[::-1], "", value[half:], value.swapcase(), f"1 {value}", value[:half], "xyz")[number]
    if kind in (list, tuple):
        return kind(_vary_items(list(value), number))
    if kind in (set, frozenset):
        try:
            return kind(_vary_items(sorted(value, key=repr), number))
        except TypeError:  # varied items may be unhashable
            return value
    if kind is dict:
        kept = list(value.items())[number % 2 :]
        return {key: _vary(item, number) for key, item in kept}
    return value


def _vary_items(items: list[Any], number: int) -> list[Any]:
    if number == 1:
        return items[::-1]
    if number == 2:
        return items[1:]
    if number == 3:
        return []
    if number == 4:
        return items + items[:1]
    return [_vary(item, number) for item in items]
