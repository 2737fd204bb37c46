"""Host, Origin and headers, over real connections; and the page /docs."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import socket
from collections.abc import Iterator
from html.parser import HTMLParser

import httpx2
import pytest
from serving_support import FirstWord, running

from text2grad.reward_model.serving.app import ServeSettings
from text2grad.reward_model.serving.docs_page import describe_type

BODY = json.dumps({"examples": [{"prompt": "p", "completion": "c"}]}).encode()


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    settings = ServeSettings(allowed_hosts=["Judge.example"], max_headers=10, max_header_bytes=2000)
    with running(FirstWord(), settings) as url:
        yield httpx2.URL(url).port or 0


def post(port: int, *headers: str) -> tuple[int, dict[str, str], str]:
    """Send a request with exactly these headers; return status, headers and body."""
    lines = ["POST /v1/score HTTP/1.1", "Content-Type: application/json", f"Content-Length: {len(BODY)}", *headers]
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall("\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1") + BODY)
        answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    head, _, body = answer.decode("latin-1").partition("\r\n\r\n")
    status, *fields = head.split("\r\n")
    return int(status.split()[1]), dict(field.lower().split(": ", 1) for field in fields), body


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:{port}", "127.0.0.1:{port}", "[::1]:{port}", "judge.example", "judge.example:443"]
)
def test_its_own_names_are_served(port: int, host: str) -> None:
    assert post(port, f"Host: {host.format(port=port)}")[0] == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "evil.example:{port}",
        "notjudge.example",
        "127.0.0.1.evil.example",
        "127.0.0.2",
        "10.0.0.1:{port}",
        "user@localhost",
        "localhost:80:80",
        "[::1",
        "[fe80::1]",
        "",
    ],
)
def test_other_names_are_refused(port: int, host: str) -> None:
    status, _, body = post(port, f"Host: {host.format(port=port)}")
    assert status == 421
    assert "is not allowed; if it is this server, start it with --allowed-host" in json.loads(body)["detail"]


@pytest.mark.parametrize("hosts", [[], ["Host: localhost", "Host: evil.example"]])
def test_one_host_is_required(port: int, hosts: list[str]) -> None:
    assert post(port, *hosts)[0] in (400, 421)


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://localhost:{port}", 200),
        ("https://LOCALHOST:{port}", 200),
        ("http://localhost:1", 403),
        ("http://127.0.0.1:{port}", 403),
        ("https://evil.example", 403),
        ("null", 403),
        ("", 403),
    ],
)
def test_web_pages_of_other_origins_are_refused(port: int, origin: str, status: int) -> None:
    answer = post(port, f"Host: localhost:{port}", f"Origin: {origin.format(port=port)}")
    assert answer[0] == status
    assert "access-control-allow-origin" not in answer[1]


def test_any_host_can_be_allowed() -> None:
    with running(FirstWord(), ServeSettings(allowed_hosts=["*"])) as url:
        assert post(httpx2.URL(url).port or 0, "Host: anything.example")[0] == 200


@pytest.mark.parametrize(
    "headers",
    [[f"X-{i}: 1" for i in range(10)], ["X: " + "x" * 2000], [f"X-{i}: {'x' * 250}" for i in range(8)]],
    ids=["many", "long", "many long"],
)
def test_excessive_headers_are_refused(port: int, headers: list[str]) -> None:
    assert post(port, "Host: localhost", *headers)[0] in (400, 431)
    assert post(port, "Host: localhost", "X: " + "x" * 1000)[0] == 200


def test_a_long_address_is_refused(port: int) -> None:
    response = httpx2.get(f"http://localhost:{port}/health?" + "x" * 1950)
    assert response.status_code == 431
    assert response.json()["detail"] == "more than 10 headers, or more than 2000 bytes of them"


@pytest.mark.parametrize("path", ["/health", "/docs", "/nothing", "/openapi.json"])
def test_every_response_is_locked_down(port: int, path: str) -> None:
    response = httpx2.get(f"http://localhost:{port}{path}")
    assert response.headers["x-content-type-options"] == "nosniff"
    policy = response.headers.get_list("content-security-policy")
    assert len(policy) == 1
    assert policy[0].startswith("default-src 'none'; ")
    assert "frame-ancestors 'none'" in policy[0]
    assert "server" not in response.headers


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "action")]
        assert not any(name.startswith("on") or name == "style" for name, _ in attrs)


def test_the_docs_come_from_this_server_alone(port: int) -> None:
    response = httpx2.get(f"http://localhost:{port}/docs")
    page = Page()
    page.feed(response.text)
    assert "script" not in page.tags
    assert page.addresses == ["openapi.json"]
    (style,) = re.findall(r"<style>(.*?)</style>", response.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in response.headers["content-security-policy"]
    for text in ("POST /v1/score", "GET /health", "list of ScoreExample", "Retry-After", "<h3>Feedback</h3>"):
        assert text in response.text
    assert httpx2.get(f"http://localhost:{port}/redoc").status_code == 404


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"$ref": "#/components/schemas/Span"}, "Span"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string or null"),
        ({"type": "array", "items": {"$ref": "#/x/Span"}}, "list of Span"),
        ({"enum": ["good", "poor"], "type": "string"}, '"good" or "poor"'),
        ({"prefixItems": [{"type": "integer"}, {"type": "number"}], "type": "array"}, "[integer, number]"),
        ({}, "anything"),
    ],
)
def test_types_in_words(schema: dict[str, object], words: str) -> None:
    assert describe_type(schema) == words
