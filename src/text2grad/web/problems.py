"""Error responses: one sentence that names the field and what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from text2grad.schema import Strict, field_path

_MAX_ERROR_CHARS = 300


class Problem(Strict):
    """The reason of an error in one sentence."""

    detail: str


def describe_errors(errors: Sequence[Mapping[str, Any]]) -> str:
    """Return one of pydantic's errors as `field: reason`; of the two variants of a prompt, the one that got further."""
    error = max(errors, key=lambda error: len(error["loc"]))
    parts = [part for part in error["loc"] if part != "str" and not str(part).startswith("list[")]
    message = f"{field_path(parts).removeprefix('body.')}: {error['msg'].removeprefix('Value error, ')}"
    return message[:_MAX_ERROR_CHARS].encode(errors="replace").decode()
