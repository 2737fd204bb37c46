"""When an endpoint counts as down."""

from __future__ import annotations

import pytest

from text2grad.critics.llm.breaker import Breaker
from text2grad.errors import UserError


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def breaker(clock):
    return Breaker("http://host/v1", failures=3, seconds=10, clock=clock)


def test_a_row_of_failures_over_some_time_opens_it(breaker, clock):
    for clock.now in (0, 5, 11):
        breaker.check()
        breaker.failed("http 502")
    with pytest.raises(UserError, match=r"http://host/v1 is down: 3 attempts in a row failed within 11 s.*http 502"):
        breaker.check()


def test_a_burst_of_failures_is_no_proof(breaker, clock):
    for _ in range(64):
        breaker.failed("http 502")
    breaker.check()
    clock.now = 10
    breaker.failed("http 502")
    with pytest.raises(UserError, match="65 attempts in a row"):  # it was only the time that was missing
        breaker.check()


def test_few_failures_are_no_proof(breaker, clock):
    for clock.now in (0, 100):
        breaker.failed("timeout")
    breaker.check()
    breaker.failed("timeout")
    with pytest.raises(UserError, match="3 attempts in a row"):
        breaker.check()


def test_an_answer_ends_the_row(breaker, clock):
    for clock.now in (0, 5):
        breaker.failed("timeout")
    breaker.answered()
    for clock.now in (6, 9, 12):
        breaker.failed("timeout")
    breaker.check()
    clock.now = 16
    breaker.failed("timeout")
    with pytest.raises(UserError, match="4 attempts in a row failed within 10 s"):  # counted from the answer on
        breaker.check()


def test_an_endpoint_that_never_answered_and_cannot_be_reached_is_down(breaker):
    breaker.unreachable("connection refused")
    with pytest.raises(UserError, match="connection refused"):
        breaker.check()


def test_one_that_has_answered_before_gets_its_time(breaker):
    breaker.answered()
    breaker.unreachable("connection refused")
    breaker.check()
    fresh = Breaker("http://host/v1", failures=3, seconds=10)
    fresh.unreachable("connection refused")
    with pytest.raises(UserError, match="connection refused"):  # the answer makes the difference
        fresh.check()
