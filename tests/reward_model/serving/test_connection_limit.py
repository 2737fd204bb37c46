"""Clients that waste connections: silent, slow, endless, many, and such that do not read."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Sequence
from http.client import HTTPConnection
from typing import Any

import httpx2
import pytest
from serving_support import FirstWord, running

from text2grad.reward_model.serving.app import ServeSettings
from text2grad.schema import Example, Feedback

LIMITS: dict[str, Any] = {"header_timeout": 0.5, "response_timeout": 0.5, "body_timeout": 0.5}


def connect(url: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", httpx2.URL(url).port), timeout=10)


def seconds_until_closed(connection: socket.socket, drip: bytes = b"") -> float:
    """Send a byte of `drip` every 50 ms until the server closes the connection; return how long that took."""
    began = time.monotonic()
    connection.settimeout(0.05)
    sent = 0
    while time.monotonic() - began < 8:
        try:
            if connection.recv(1 << 16) == b"":
                return time.monotonic() - began
        except TimeoutError:
            pass
        except ConnectionError:
            return time.monotonic() - began
        try:
            connection.sendall(drip[sent : sent + 1])
        except OSError:
            return time.monotonic() - began
        sent += 1
    raise AssertionError("the connection is still open")


@pytest.mark.parametrize(
    ("first", "drip"),
    [
        (b"", b""),
        (b"", b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 1000),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\n", b"X: y\r\n" * 1000),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /health HTTP/1.1\r\n" + b"X: y\r\n" * 1000),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999\r\n\r\n", b"x" * 9999),
        (b"POST /v1/score HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999\r\n\r\n", b"x" * 9999),
        (b"POST /v1/score HTTP/1.1\r\nHost: evil\r\nContent-Length: 9999\r\n\r\n", b"x" * 9999),
        (b"POST /v1/score HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 1000),
    ],
    ids=["silent", "slow", "slow headers", "second request", "body of GET", "slow body", "refused", "chunks"],
)
def test_a_slow_client_loses_its_connection(first: bytes, drip: bytes) -> None:
    with running(FirstWord(), ServeSettings(**LIMITS)) as url, connect(url) as connection:
        connection.sendall(first)
        assert 0.2 < seconds_until_closed(connection, drip) < 4
        assert httpx2.get(f"{url}/health").status_code == 200


def test_a_patient_client_keeps_its_connection() -> None:
    with running(FirstWord(), ServeSettings(**LIMITS)) as url:
        connection = HTTPConnection("127.0.0.1", httpx2.URL(url).port)
        connection.connect()
        first = connection.sock
        for _ in range(4):
            connection.request("GET", "/health")
            assert connection.getresponse().read()
            time.sleep(0.3)
        assert connection.sock is first
        connection.close()


def test_the_model_may_take_longer_than_a_client(critic: FirstWord) -> None:
    """The limits are on what clients do, not on how long a score takes."""
    critic.go.clear()
    body = json.dumps({"examples": [{"prompt": "p", "completion": "c"}]}).encode()
    head = b"POST /v1/score HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    with running(critic, ServeSettings(**LIMITS)) as url, connect(url) as connection:
        connection.sendall(head % len(body) + body)
        time.sleep(1.2)
        critic.go.set()
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200 ")


@pytest.fixture
def critic() -> FirstWord:
    return FirstWord()


def test_connections_beyond_the_limit_get_503_until_others_leave() -> None:
    with running(FirstWord(), ServeSettings(**LIMITS | {"max_connections": 3})) as url:
        holding = [connect(url) for _ in range(3)]
        time.sleep(0.1)
        with connect(url) as late:
            assert late.recv(1 << 16).startswith(b"HTTP/1.1 503 ")
        for connection in holding:
            seconds_until_closed(connection)
            connection.close()
        assert httpx2.get(f"{url}/health").status_code == 200


class Verbose:
    """Writes more than the buffers between server and client hold."""

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        return [Feedback(critic="v", critique="x" * 20_000_000) for _ in examples]


def test_a_client_that_does_not_read_loses_its_connection() -> None:
    body = json.dumps({"examples": [{"prompt": "p", "completion": "c"}]}).encode()
    head = b"POST /v1/score HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    with running(Verbose(), ServeSettings(**LIMITS)) as url, connect(url) as connection:
        connection.sendall(head % len(body) + body)
        time.sleep(2.5)
        received = 0
        try:
            while chunk := connection.recv(1 << 20):
                received += len(chunk)
        except ConnectionError:
            pass
        assert received < 20_000_000
        assert httpx2.get(f"{url}/health").status_code == 200
