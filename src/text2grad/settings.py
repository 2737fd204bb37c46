"""Base class of all settings, with error messages that name the key."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, Self, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from text2grad.errors import UserError
from text2grad.schema import describe


class Settings(BaseModel):
    """Immutable settings that reject unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    @classmethod
    def parse(cls, values: Any, where: str) -> Self:
        """Validate plain values; raise UserError with one sentence that starts with `where`."""
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise UserError(f"{where}: {cls._explain(error)}") from error

    @classmethod
    def _explain(cls, error: ValidationError) -> str:
        first = error.errors(include_url=False)[0]
        *sections, key = (str(part) for part in first["loc"] or ("",))
        place = f" in [{'.'.join(sections)}]" if sections else ""
        if first["type"] == "extra_forbidden":
            return f'unknown key "{key}"{place}{did_you_mean(key, _keys_at(cls, sections))}'
        if first["type"] == "missing":
            return f'key "{key}"{place} is missing'
        return describe(error)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean "..."?` with the closest known name, or the list of known names if none is close."""
    known = list(known)
    near = difflib.get_close_matches(name, known, n=1)
    return f'; did you mean "{near[0]}"?' if near else f"; known: {', '.join(known)}."


def flatten(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten nested settings to dotted names."""
    result: dict[str, Any] = {}
    for key, value in values.items():
        result |= flatten(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return result


def _keys_at(settings: type[BaseModel], sections: list[str]) -> list[str]:
    for section in sections:
        field = settings.model_fields.get(section)
        annotation = field.annotation if field is not None else None
        variants = get_args(annotation) or (annotation,)  # of an annotation such as `LoraSettings | None`
        nested = [variant for variant in variants if isinstance(variant, type) and issubclass(variant, BaseModel)]
        if not nested:
            return []
        settings = nested[0]
    return list(settings.model_fields)
