"""What stops a run against an endpoint: the maximum cost, and the circuit breaker of an endpoint that is down."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from text2grad.errors import UserError


@dataclass
class CostLedger:
    """Count tokens and cost; prices are per million tokens, in the user's currency.

    With `max_cost`, a request is sent only if its worst case and that of all requests in flight still fit, so the
    maximum is never exceeded; up to one worst case per request in flight may stay unspent.
    """

    price_in: float = 0.0
    price_out: float = 0.0
    max_cost: float | None = None
    tokens_in: int = 0
    tokens_out: int = 0
    reserved: float = 0.0

    @property
    def cost(self) -> float:
        """Cost of the tokens so far."""
        return self._price(self.tokens_in, self.tokens_out)

    def add(self, tokens_in: int, tokens_out: int) -> None:
        """Count the tokens of one completion."""
        self.tokens_in += tokens_in
        self.tokens_out += tokens_out

    @contextmanager
    def reserve(self, max_tokens_in: int, max_tokens_out: int) -> Iterator[None]:
        """Reserve the worst case of one request while it is in flight; raise UserError where it does not fit."""
        worst_case = self._price(max_tokens_in, max_tokens_out)
        if self.max_cost is not None and self.cost + self.reserved + worst_case > self.max_cost:
            raise UserError(
                f"the next request may exceed the maximum cost of {self.max_cost:g} ({self.cost:.4f} is spent); raise "
                f"--max-cost and run the same command again: it resumes where it stopped"
            )
        self.reserved += worst_case
        try:
            yield
        finally:
            self.reserved -= worst_case

    def _price(self, tokens_in: int, tokens_out: int) -> float:
        return (tokens_in * self.price_in + tokens_out * self.price_out) / 1_000_000


@dataclass
class CircuitBreaker:
    """Abort a run whose endpoint is down, instead of failing a million records one by one.

    It opens when `max_failures` requests in a row failed, all their retries included, and no response came for
    `seconds`. Any response of a working server (a rate limit, say) resets it. An endpoint that has never responded and
    refuses connections opens it at once.
    """

    endpoint: str
    max_failures: int
    seconds: float
    clock: Callable[[], float] = time.monotonic
    _num_failures: int = 0
    _has_responded: bool = False
    _first_failure: float | None = None
    _reason: str | None = None

    def check(self) -> None:
        """Raise UserError if the breaker is open."""
        if self._reason is not None:
            raise UserError(
                f"{self.endpoint} is down: {self._reason}; check that the server runs and that --base-url is right, "
                f"then run the same command again: it resumes where it stopped"
            )

    def record_response(self) -> None:
        """Record that the server works."""
        self._has_responded = True
        self._num_failures = 0
        self._first_failure = None

    def record_failure(self, reason: str, unreachable: bool = False) -> None:
        """Record a request that failed because of the server or the network."""
        now = self.clock()
        self._first_failure = now if self._first_failure is None else self._first_failure
        self._num_failures += 1
        elapsed = now - self._first_failure
        if unreachable and not self._has_responded:
            self._reason = reason
        elif self._num_failures >= self.max_failures and elapsed >= self.seconds:
            self._reason = (
                f"{self._num_failures} requests in a row failed within {elapsed:.0f} s, the last with: {reason}"
            )
