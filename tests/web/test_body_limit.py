"""The middleware alone, between a scripted client and a scripted application."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from fastapi import HTTPException

from text2grad.web.body_limit import BodyLimitMiddleware

SECONDS = 0.2


class Client:
    """Sends its chunks `delay` seconds apart, then is silent, or disconnects."""

    def __init__(self, chunks: Sequence[bytes], delay: float = 0, disconnects: bool = False):
        self.chunks = list(chunks)
        self.delay = delay
        self.disconnects = disconnects

    async def receive(self) -> dict[str, Any]:
        await asyncio.sleep(self.delay)
        if self.chunks:
            chunk = self.chunks.pop(0)
            return {"type": "http.request", "body": chunk, "more_body": bool(self.chunks) or self.disconnects}
        if not self.disconnects:
            await asyncio.Event().wait()
        return {"type": "http.disconnect"}


def read_through_limit(client: Client, max_bytes: int = 10) -> bytes:
    """Return the body as the application receives it."""
    received = []

    async def app(scope, receive, send):
        while True:
            message = await receive()
            received.append(message.get("body", b""))
            if not message.get("more_body", False):
                return

    middleware = BodyLimitMiddleware(app, max_bytes, SECONDS, remedy="send less")
    asyncio.run(middleware({"type": "http", "headers": []}, client.receive, None))
    return b"".join(received)


@pytest.mark.parametrize("chunks", [[b"0123456789"], [b"0123", b"", b"456789"], [b""]])
def test_a_body_within_the_limit_passes(chunks):
    assert read_through_limit(Client(chunks)) == b"".join(chunks)


def test_one_byte_too_many_is_rejected_after_the_rest_is_discarded():
    client = Client([b"012345", b"67890", b"the", b"rest"])
    with pytest.raises(HTTPException, match=r"larger than 10 bytes.*send less") as rejected:
        read_through_limit(client)
    assert rejected.value.status_code == 413
    assert client.chunks == []


@pytest.mark.parametrize("max_bytes", [10, 10**6])
def test_a_slow_or_endless_body_times_out(max_bytes):
    client = Client([b"0123456789"] * 100, delay=SECONDS / 4)
    with pytest.raises(HTTPException, match=r"longer than 0\.2 seconds") as rejected:
        read_through_limit(client, max_bytes)
    assert rejected.value.status_code == 408
    assert rejected.value.headers == {"Connection": "close"}
    assert client.chunks


def test_a_disconnect_reaches_the_application():
    assert read_through_limit(Client([b"x"], disconnects=True)) == b"x"


def test_other_scopes_pass_untouched():
    passed = []

    async def app(scope, receive, send):
        passed.append((scope, receive, send))

    asyncio.run(BodyLimitMiddleware(app, 10, SECONDS, remedy="send less")({"type": "lifespan"}, "receive", "send"))

    assert passed == [({"type": "lifespan"}, "receive", "send")]
