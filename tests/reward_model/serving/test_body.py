"""The middleware by itself, between a client and an application made of lists."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any

import pytest

from text2grad.reward_model.serving.body import BodyLimit

SECONDS = 0.2


class Client:
    """Sends its pieces one after the other, `delay` seconds apart, then is silent."""

    def __init__(self, pieces: Sequence[bytes], announced: int | None = None, delay: float = 0, leaves: bool = False):
        self.pieces = list(pieces)
        self.headers = [] if announced is None else [(b"content-length", str(announced).encode())]
        self.delay = delay
        self.leaves = leaves
        self.answered: list[dict[str, Any]] = []

    async def receive(self) -> dict[str, Any]:
        await asyncio.sleep(self.delay)
        if self.pieces:
            piece = self.pieces.pop(0)
            return {"type": "http.request", "body": piece, "more_body": bool(self.pieces) or self.leaves}
        if not self.leaves:
            await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        self.answered.append(message)


def through_limit(client: Client, max_bytes: int = 10) -> list[bytes]:
    """The bodies that reach the application."""
    reached = []

    async def app(scope, receive, send):
        message = await receive()
        assert not message["more_body"]
        reached.append(message["body"])

    limit = BodyLimit(app, max_bytes, SECONDS)
    asyncio.run(limit({"type": "http", "headers": client.headers}, client.receive, client.send))
    return reached


def status_and_detail(client: Client) -> tuple[int, str]:
    start, body, end = client.answered
    assert dict(start["headers"])[b"content-length"] == str(len(body["body"])).encode()
    assert (end["body"], end["more_body"]) == (b"", False)
    return start["status"], json.loads(body["body"])["detail"]


@pytest.mark.parametrize("pieces", [[b"0123456789"], [b"0123", b"", b"456789"], [b""]])
def test_a_body_within_the_limit_arrives_in_one_piece(pieces):
    client = Client(pieces, announced=len(b"".join(pieces)))
    assert through_limit(client) == [b"".join(pieces)]
    assert client.answered == []


def test_one_byte_too_many_is_refused_although_nothing_announced_it():
    client = Client([b"012345", b"67890", b"the rest"])

    assert through_limit(client) == []

    status, detail = status_and_detail(client)
    assert status == 413
    assert "larger than 10 bytes" in detail
    assert "--max-body-bytes" in detail


def test_an_announced_giant_is_answered_before_any_of_it_is_read():
    client = Client([b"x" * 50] * 3, announced=150)
    pieces_left = []
    send = client.send

    async def watch(message):
        pieces_left.append(len(client.pieces))
        await send(message)

    client.send = watch

    assert through_limit(client) == []
    assert status_and_detail(client)[0] == 413
    assert pieces_left == [3, 3, 0]  # the answer first, then what the client still sends is thrown away


def test_an_endless_body_is_not_read_for_ever():
    client = Client([b"x" * 50] * 100_000)
    began = time.monotonic()

    through_limit(client)

    assert SECONDS <= time.monotonic() - began < 5
    assert client.pieces
    assert status_and_detail(client)[0] == 413


def test_a_body_that_drips_is_given_up():
    client = Client([b"x"] * 10, delay=SECONDS / 4)

    assert through_limit(client) == []

    status, detail = status_and_detail(client)
    assert status == 408
    assert "longer than 0.2 seconds" in detail


def test_a_client_that_leaves_gets_no_answer():
    client = Client([b"x"], leaves=True)
    assert through_limit(client) == []
    assert client.answered == []


def test_after_the_body_the_application_hears_the_client_leave():
    client = Client([b"x"])
    heard = []

    async def app(scope, receive, send):
        await receive()
        client.leaves = True
        heard.append(await receive())

    asyncio.run(BodyLimit(app, 10, SECONDS)({"type": "http", "headers": []}, client.receive, client.send))

    assert heard == [{"type": "http.disconnect"}]


def test_what_is_not_http_passes_untouched():
    passed = []

    async def app(scope, receive, send):
        passed.append((scope, receive, send))

    asyncio.run(BodyLimit(app, 10, SECONDS)({"type": "lifespan"}, "receive", "send"))

    assert passed == [({"type": "lifespan"}, "receive", "send")]
