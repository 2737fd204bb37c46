"""What the readers share: checked fields, checked offsets, and scores on one scale."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from text2grad.schema import Label, Span


def text_field(row: Mapping[str, Any], name: str) -> str:
    """Return a field that must be a text with something in it."""
    value = row[name]
    if value is not None and not isinstance(value, str):
        raise ValueError(f"{name} is not a text")
    if value is None or not value.strip():
        raise ValueError(f"{name} is empty")
    return value


def optional_text(row: Mapping[str, Any], name: str) -> str | None:
    """Return a text, None where the field is missing or empty."""
    value = row.get(name)
    return value if isinstance(value, str) and value.strip() else None


def checked_span(
    completion: str,
    start: int,
    end: int,
    text: str | None,
    *,
    label: Label = "poor",
    severity: float = 1.0,
    reason: str | None = None,
    critic: str = "",
) -> Span:
    """Return the span of annotated words after comparing its offsets with them; ValueError where they disagree.

    Words that are elsewhere, but in the completion exactly once, are taken there (`match` is then "exact").
    """
    for name, value in (("start", start), ("end", end)):
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError(f"{name} of a span is {value!r}, not a whole number")
    options: dict[str, Any] = {"label": label, "severity": severity, "reason": reason, "critic": critic}
    if text is None or completion[max(start, 0) : max(end, 0)] == text:
        if not 0 <= start < end <= len(completion):
            raise ValueError(f"a span is ({start}, {end}), but the completion has {len(completion)} characters")
        return Span(start=start, end=end, **options)
    if text.strip() and completion.count(text) == 1:
        found = completion.index(text)
        return Span(start=found, end=found + len(text), match="exact", **options)
    there = completion[max(start, 0) : max(end, 0)]
    raise ValueError(f'a span is "{text}", but at ({start}, {end}) the completion has "{there}"')


def rescale(value: float, low: float, high: float) -> float:
    """Map a rating from [low, high] to [-1, 1]; ValueError where it is outside."""
    if not low <= value <= high:
        raise ValueError(f"a rating is {value:g}, which is not from {low:g} to {high:g}")
    return 2 * (value - low) / (high - low) - 1
