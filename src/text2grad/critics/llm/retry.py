"""When to ask again: exponential backoff with jitter, or when the server says."""

from __future__ import annotations

import email.utils
import time
from collections.abc import Mapping

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt, wait_random_exponential

_LONGEST_ASKED = 600.0


class PassingError(Exception):
    """An attempt failed in a way that a later one may not; `after` is the pause that the server asked for."""

    def __init__(self, why: str, after: float | None = None, raw: str | None = None, connected: bool = True) -> None:
        super().__init__(why)
        self.after = after
        self.raw = raw
        self.connected = connected


def attempts(most: int, base: float, longest: float) -> AsyncRetrying:
    """At most `most` attempts; the n-th pause is drawn from [0, base * 2^n], never above `longest`.

    A server's Retry-After is waited out in full, up to ten minutes, plus up to `base` so that requests do not come
    back in step.
    """
    jittered = wait_random_exponential(multiplier=base, max=longest)
    spread = wait_random_exponential(multiplier=base, max=base)

    def pause(state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        asked = error.after if isinstance(error, PassingError) else None
        return jittered(state) if asked is None else min(asked, _LONGEST_ASKED) + spread(state)

    return AsyncRetrying(
        retry=retry_if_exception_type(PassingError), stop=stop_after_attempt(most), wait=pause, reraise=True
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks to wait: `retry-after-ms`, or `Retry-After` in seconds or as a date."""
    milliseconds, given = headers.get("retry-after-ms"), headers.get("retry-after")
    seconds = _number(milliseconds)
    if seconds is not None:
        return seconds / 1000
    if given is None:
        return None
    seconds = _number(given)
    if seconds is not None:
        return seconds
    date = email.utils.parsedate_tz(given)
    try:
        return max(0.0, email.utils.mktime_tz(date) - time.time()) if date else None
    except (ValueError, OverflowError):  # a year that no calendar has
        return None


def _number(text: str | None) -> float | None:
    """A number of at least 0."""
    try:
        value = float(text) if text is not None else -1.0
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None
