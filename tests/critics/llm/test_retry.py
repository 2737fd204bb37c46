"""When a request is repeated."""

from __future__ import annotations

import asyncio
import email.utils
import time

import pytest

from text2grad.critics.llm.retry import PassingError, attempts, retry_after


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Mon, 01 Jan 99999 00:00:00 GMT"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
    ],
)
def test_retry_after_in_seconds(headers, seconds):
    assert retry_after(headers) == seconds


def test_retry_after_as_a_date():
    assert retry_after({"retry-after": email.utils.formatdate(time.time() + 30)}) == pytest.approx(30, abs=2)
    assert retry_after({"retry-after": email.utils.formatdate(time.time() - 30)}) == 0


def pauses(most, base, longest, after=None):
    waited = []

    async def no_sleep(seconds):
        waited.append(seconds)

    async def run():
        async for attempt in attempts(most, base, longest).copy(sleep=no_sleep):
            with attempt:
                raise PassingError("busy", after)

    with pytest.raises(PassingError, match="busy"):
        asyncio.run(run())
    return waited


def test_pauses_grow_are_jittered_and_bounded():
    drawn = [pauses(7, base=1.0, longest=10.0) for _ in range(50)]
    assert all(len(waited) == 6 for waited in drawn)
    for n in range(6):
        column = [waited[n] for waited in drawn]
        assert len(set(column)) > 25
        assert max(column) <= min(2**n, 10)
    assert max(waited[4] for waited in drawn) > 4


def test_the_server_decides_when_it_says():
    assert all(5 <= pause <= 5.5 for pause in pauses(4, base=0.5, longest=60, after=5.0))
    assert 100 <= pauses(2, base=0.5, longest=60, after=100.0)[0] <= 100.5
    assert 600 <= pauses(2, base=0.5, longest=60, after=86400.0)[0] <= 600.5
