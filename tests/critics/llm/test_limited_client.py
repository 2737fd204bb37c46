"""Responses of a hostile server: bombs, endless bodies, one byte at a time, redirects."""

from __future__ import annotations

import gzip
import socket
import threading
import time
import tracemalloc
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from text2grad.critics.llm.critic import LLMCritic
from text2grad.errors import UserError
from text2grad.schema import Example

REPLY = '{"reasoning": "r", "critique": "It is \u00fcber good.", "spans": [], "omissions": []}'
EXAMPLE = Example(id="1", prompt="p", completion="Hello.")


@pytest.mark.parametrize(("encoding", "compress"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
def test_compressed_replies_are_read(server, critic, completion, served, encoding, compress):
    body = compress(completion(REPLY).body.encode())
    server.script = [served(body=body, headers={"Content-Encoding": encoding})]
    (feedback,) = critic().critique([EXAMPLE])
    assert feedback.critique == "It is über good."


@pytest.mark.parametrize("status", [200, 400])
def test_a_bomb_is_noticed_while_it_is_read(server, critic, served, status):
    bomb = gzip.compress(b"\0" * 300_000_000)
    assert len(bomb) < 1 << 20
    server.always = served(status, bomb, {"Content-Encoding": "gzip"})
    tracemalloc.start()
    (feedback,) = critic(max_retries=0, max_reply_bytes=1 << 20).critique([EXAMPLE])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert feedback.error == "too large: the response has more than 1048576 bytes (max_reply_bytes)"
    assert peak < 30e6
    assert len(server.requests) == 1


def test_a_large_reply_is_refused(server, critic, completion):
    server.always = completion("x" * 5000)
    (feedback,) = critic(max_reply_bytes=4000).critique([EXAMPLE])
    assert feedback.error == "too large: the response has more than 4000 bytes (max_reply_bytes)"
    (feedback,) = critic(max_reply_bytes=6000).critique([EXAMPLE])
    assert feedback.error == "unreadable: the reply has no JSON object"


@pytest.mark.parametrize(
    ("encoding", "error"),
    [
        ("gzip", "garbage: the response is not valid gzip"),
        ("br", 'garbage: the response is compressed with "br", which nobody asked for'),
    ],
)
def test_what_cannot_be_decompressed_fails(server, critic, served, encoding, error):
    server.always = served(body=b"{}", headers={"Content-Encoding": encoding})
    (feedback,) = critic().critique([EXAMPLE])
    assert feedback.error == error


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_are_not_followed(server, critic, served, completion, status):
    target = server.url.replace("127.0.0.1", "localhost") + "/elsewhere"
    server.script = [served(status, "", {"Location": target}), completion(REPLY)]
    with pytest.raises(UserError, match=rf"redirects to {target} \(HTTP {status}\), which is not followed: your key"):
        critic().critique([EXAMPLE])
    assert len(server.requests) == 1


@contextmanager
def dripping_server() -> Iterator[str]:
    """Promises a body and sends one byte of it every 50 ms."""
    stop = threading.Event()

    def drip(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(1 << 16)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n")
            while not stop.wait(0.05):
                try:
                    connection.sendall(b" ")
                except OSError:
                    return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip, args=[listener])
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        stop.set()
        thread.join()


def test_a_reply_that_drips_times_out():
    with dripping_server() as url:
        began = time.monotonic()
        (feedback,) = LLMCritic(model="m", base_url=url, timeout=0.3, max_retries=0).critique([EXAMPLE])
    assert feedback.error == "timeout: no whole response within 0.6 s"
    assert time.monotonic() - began < 5
