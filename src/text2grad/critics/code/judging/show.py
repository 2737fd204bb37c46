"""Values as text that is the same in every run."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MAX_TEXT = 400  # characters
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_MAX_DEPTH = 5


def show(value: Any, convert: Callable[[Any], str] | None = None) -> str:
    """Return a shortened text of a value: its `repr`, sets sorted, or the result of `convert`; no memory addresses."""
    try:
        text = convert(value) if convert else _repr(value, 0)
    except Exception as error:
        text = f"<{type(value).__name__} that cannot be shown: {type(error).__name__}>"
    text = _ADDRESS.sub("", text[: 4 * MAX_TEXT]).encode("utf-8", "replace").decode()  # unpaired surrogates
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"


def _repr(value: Any, depth: int) -> str:
    kind = type(value)
    if kind not in (list, tuple, set, frozenset, dict) or not value or depth > _MAX_DEPTH:
        return repr(value)
    if kind is dict:
        pairs = [f"{_repr(key, depth + 1)}: {_repr(item, depth + 1)}" for key, item in list(value.items())[:MAX_TEXT]]
        return f"{{{', '.join(pairs)}}}"
    items = [_repr(item, depth + 1) for item in list(value)[: MAX_TEXT if kind in (list, tuple) else None]]
    if kind is list:
        return f"[{', '.join(items)}]"
    if kind is tuple:
        return f"({', '.join(items)}{',' if len(value) == 1 else ''})"
    text = f"{{{', '.join(sorted(items))}}}"
    return text if kind is set else f"frozenset({text})"
