"""Stops asking an endpoint that is down, instead of failing a million records one by one."""

from __future__ import annotations

import time
from collections.abc import Callable

from text2grad.errors import UserError


class Breaker:
    """Opens when `failures` attempts in a row failed and nothing came back for `seconds`; then nothing more is asked.

    An answer of any kind that shows a working server (a rate limit, say) closes the row. An endpoint that has never
    answered, and that a question with all its retries could not even connect to, is down without further proof.
    """

    def __init__(
        self, endpoint: str, failures: int, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._endpoint = endpoint
        self._failures = failures
        self._seconds = seconds
        self._clock = clock
        self._in_a_row = 0
        self._ever_answered = False
        self._quiet_since: float | None = None
        self._why: str | None = None

    def check(self) -> None:
        """Raise UserError if the endpoint is taken to be down."""
        if self._why is not None:
            raise UserError(
                f"{self._endpoint} is down: {self._why}; check that the server runs and that --base-url is right, then "
                f"run the same command again: it continues where it stopped"
            )

    def answered(self) -> None:
        self._ever_answered = True
        self._in_a_row = 0
        self._quiet_since = None

    def failed(self, why: str) -> None:
        """One attempt failed for a reason that lies with the server or the way to it."""
        now = self._clock()
        self._quiet_since = now if self._quiet_since is None else self._quiet_since
        self._in_a_row += 1
        quiet = now - self._quiet_since
        if self._in_a_row >= self._failures and quiet >= self._seconds:
            self._open(f"{self._in_a_row} attempts in a row failed within {quiet:.0f} s, the last one with: {why}")

    def unreachable(self, why: str) -> None:
        """A question could not connect in any of its attempts."""
        if not self._ever_answered:
            self._open(why)

    def _open(self, why: str) -> None:
        self._why = self._why or why
