"""When an endpoint counts as down, and when a request may exceed the maximum cost."""

from __future__ import annotations

import pytest

from text2grad.critics.llm.safeguards import CircuitBreaker, CostLedger
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
    return CircuitBreaker("http://host/v1", max_failures=3, seconds=10, clock=clock)


def test_failures_in_a_row_over_some_time_open_it(breaker, clock):
    for clock.now in (0, 5, 11):
        breaker.check()
        breaker.record_failure("http 502")
    with pytest.raises(UserError, match=r"http://host/v1 is down: 3 requests in a row failed within 11 s.*http 502"):
        breaker.check()


def test_a_burst_of_failures_does_not_open_it(breaker, clock):
    for _ in range(64):
        breaker.record_failure("http 502")
    breaker.check()
    clock.now = 10
    breaker.record_failure("http 502")
    with pytest.raises(UserError, match="65 requests in a row"):  # only the time was missing
        breaker.check()


def test_few_failures_do_not_open_it(breaker, clock):
    for clock.now in (0, 100):
        breaker.record_failure("timeout")
    breaker.check()
    breaker.record_failure("timeout")
    with pytest.raises(UserError, match="3 requests in a row"):
        breaker.check()


def test_a_response_resets_it(breaker, clock):
    for clock.now in (0, 5):
        breaker.record_failure("timeout")
    breaker.record_response()
    for clock.now in (6, 9, 12):
        breaker.record_failure("timeout")
    breaker.check()
    clock.now = 16
    breaker.record_failure("timeout")
    with pytest.raises(UserError, match="4 requests in a row failed within 10 s"):  # counted from the response on
        breaker.check()


def test_an_endpoint_that_never_responded_and_refuses_connections_is_down(breaker):
    breaker.record_failure("connection refused", unreachable=True)
    with pytest.raises(UserError, match="connection refused"):
        breaker.check()


def test_an_endpoint_that_has_responded_before_may_recover(breaker):
    breaker.record_response()
    breaker.record_failure("connection refused", unreachable=True)
    breaker.check()
    fresh = CircuitBreaker("http://host/v1", max_failures=3, seconds=10)
    fresh.record_failure("connection refused", unreachable=True)
    with pytest.raises(UserError, match="connection refused"):  # the response makes the difference
        fresh.check()


def test_requests_in_flight_count_towards_the_maximum_cost():
    ledger = CostLedger(price_in=1.0, price_out=2.0, max_cost=10.0)
    with ledger.reserve(2_000_000, 2_000_000):  # 6 of 10
        with (
            pytest.raises(UserError, match=r"may exceed the maximum cost of 10 \(0\.0000 is spent\)"),
            ledger.reserve(5_000_000, 0),
        ):
            pass
        ledger.add(1_000_000, 500_000)
    assert (ledger.cost, ledger.reserved) == (2.0, 0.0)
    with ledger.reserve(5_000_000, 0):
        assert ledger.reserved == 5.0
