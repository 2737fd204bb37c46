"""The page of a run that is going on."""

from __future__ import annotations

import html
import http.client
import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from text2grad.report.watch import watch


@pytest.fixture
def run(make_run: Callable[..., Path]) -> Path:
    return make_run(steps=4, samples=2)


@pytest.fixture
def port(run: Path) -> Iterator[int]:
    with watch(run) as address:
        yield int(urlsplit(address).port or 0)


def ask(port: int, method: str = "GET", path: str = "/", host: str | None = None) -> tuple[int, dict[str, str], str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path, headers={"Host": host or f"127.0.0.1:{port}"})
    reply = connection.getresponse()
    body = reply.read().decode()
    connection.close()
    return reply.status, {name.lower(): value for name, value in reply.getheaders()}, body


def test_the_page_is_the_report_and_may_ask_its_own_server_only(port: int) -> None:
    status, headers, body = ask(port)
    assert status == 200
    assert "This run is going on" in body
    assert "connect-src &#39;self&#39;" in body
    assert "default-src &#39;none&#39;" in body
    assert (headers["x-frame-options"], headers["cache-control"]) == ("DENY", "no-store")


def test_a_new_step_is_a_new_version(run: Path, port: int) -> None:
    _, first, body = ask(port)
    assert ask(port, "HEAD")[1]["etag"] == first["etag"]
    assert ask(port)[2] == body
    with (run / "metrics.jsonl").open("a") as metrics:
        metrics.write(json.dumps({"step": 77, "reward": 1.0}) + "\n")
    assert ask(port, "HEAD")[1]["etag"] != first["etag"]
    assert "<dd>77</dd>" in ask(port)[2]


def test_a_run_that_has_not_begun_has_a_page_that_waits(tmp_path: Path) -> None:
    with watch(tmp_path / "<b>later") as address:
        status, headers, body = ask(int(urlsplit(address).port or 0))
    assert status == 200
    assert f'data-version="{html.escape(headers["etag"])}"' in body.replace("&#34;", "&quot;")
    assert "The run is starting" in body
    assert "&lt;b&gt;later" in body


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "evil.example", "method": "HEAD"}, 421),
        ({"host": "127.0.0.1"}, 421),
        ({"path": "/config.yaml"}, 404),
        ({"path": "/../../etc/passwd"}, 404),
        ({"path": "/?a"}, 404),
        ({"method": "POST"}, 501),
    ],
)
def test_what_is_not_the_page_is_refused(port: int, request_: dict[str, Any], status: int) -> None:
    assert ask(port, **request_)[0] == status
    assert ask(port, host=f"localhost:{port}")[0] == 200


def test_a_damaged_record_is_told_and_the_server_stays_up(run: Path, port: int) -> None:
    (run / "evaluation.json").write_text("{")
    status, _, body = ask(port)
    assert status == 503
    assert "not valid JSON" in body
    (run / "evaluation.json").unlink()
    assert ask(port)[0] == 200


def test_a_browser_that_goes_away_disturbs_nothing(port: int, capfd: pytest.CaptureFixture[str]) -> None:
    for text in (b"", b"GET / HTTP/1.1\r\n", f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()):
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(text)
    assert ask(port)[0] == 200
    assert capfd.readouterr().err == ""


def test_nothing_is_served_afterwards(run: Path) -> None:
    with watch(run) as address:
        port = int(urlsplit(address).port or 0)
    with pytest.raises(ConnectionRefusedError):
        ask(port)


def test_the_page_reloads_itself_and_keeps_what_was_selected(browser: Any, run: Path) -> None:
    with watch(run) as address:
        browser.open_address(address)
        browser.evaluate("document.querySelector('[aria-label=\"Previous step\"]').click()")
        browser.evaluate("document.querySelector('[value=advantage]').click()")
        browser.evaluate("window.old = true")
        with (run / "metrics.jsonl").open("a") as metrics:
            metrics.write(json.dumps({"step": 77, "reward": 1.0}) + "\n")
        browser.wait("!window.old && document.querySelector('.tiles')?.textContent.includes('77')")
        browser.wait("document.querySelector('.sample-view')?.children.length > 0")
        assert browser.evaluate("document.querySelector('.step-name').textContent") == "Step 3"
        assert browser.evaluate("document.querySelector('[value=advantage]').checked")
    browser.wait("document.getElementById('live').textContent.startsWith('The run has ended')")
    assert browser.evaluate("document.querySelector('h1').textContent") == "quickstart"
