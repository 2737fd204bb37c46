"""What the critic's answers cost, and where spending stops."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from text2grad.errors import UserError

_MILLION = 1_000_000


@dataclass
class Ledger:
    """Counts tokens and money; prices are per million tokens, in the user's currency.

    With a maximum, a question is asked only if the worst case of it and of all that are under way still fits: the
    maximum is never passed, and up to one worst case for each question under way may stay unspent.
    """

    price_in: float = 0.0
    price_out: float = 0.0
    max_cost: float | None = None
    tokens_in: int = 0
    tokens_out: int = 0
    reserved: float = 0.0

    @property
    def cost(self) -> float:
        return self._price(self.tokens_in, self.tokens_out)

    def add(self, tokens_in: int, tokens_out: int) -> None:
        self.tokens_in += tokens_in
        self.tokens_out += tokens_out

    @contextmanager
    def reserve(self, most_in: int, most_out: int) -> Iterator[None]:
        """Hold the worst case of one question while it is under way; UserError where it does not fit."""
        worst = self._price(most_in, most_out)
        if self.max_cost is not None and self.cost + self.reserved + worst > self.max_cost:
            raise UserError(
                f"the next question may pass the maximum cost of {self.max_cost:g} ({self.cost:.4f} is spent); raise "
                f"--max-cost and run the same command again: it continues where it stopped"
            )
        self.reserved += worst
        try:
            yield
        finally:
            self.reserved -= worst

    def _price(self, tokens_in: int, tokens_out: int) -> float:
        return (tokens_in * self.price_in + tokens_out * self.price_out) / _MILLION
