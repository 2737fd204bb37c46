"""Attacks: each is refused, and the studio stays up."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from typing import Any

import pytest
from studio_support import CHANGE, COMPLETIONS, make_studio, running, write_answers

from text2grad.errors import UserError
from text2grad.studio.access import COOKIE, HEADER, choose_token, is_loopback
from text2grad.studio.app import PAGE_POLICY, load_assets

TOKEN = "0123456789abcdef0123"


def files(client: Any) -> str:
    return f"/api/files/{client.get('/api/session').json()['files'][0]['id']}"


BODY = {"annotator": "Mia", "version": 0, "status": "done"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),  # a form of another page cannot send the header
        ({HEADER: "1", "Origin": "https://evil.example"}, 403),
        ({HEADER: "1", "Origin": "null"}, 403),
        ({HEADER: "1", "Sec-Fetch-Site": "cross-site"}, 403),
        ({HEADER: "1", "Sec-Fetch-Site": "same-site"}, 403),
        ({HEADER: "1", "Host": "evil.example"}, 421),
        ({HEADER: "1", "Host": "127.0.0.1.evil.example"}, 421),
        ({HEADER: "1", "Origin": "http://127.0.0.1"}, 200),
        ({HEADER: "1", "Sec-Fetch-Site": "same-origin"}, 200),
    ],
)
def test_requests_of_other_pages_are_refused(connect: Any, headers: dict[str, str], status: int) -> None:
    client = connect(headers={})
    path = files(client)
    assert client.put(f"{path}/records/0/annotation", json=BODY, headers=headers).status_code == status
    assert (client.get(f"{path}/export").text != "") == (status == 200)


def test_other_pages_cannot_read(connect: Any) -> None:
    client = connect()
    path = files(client)
    assert client.get(f"{path}/export", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    answer = client.get(f"{path}/export", headers={"Origin": "https://evil.example"})
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers
    asked = {"Origin": "https://evil.example", "Access-Control-Request-Method": "PUT"}
    assert connect(headers={}).options(f"{path}/records/0/annotation", headers=asked).status_code == 403
    assert client.get("/", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 200  # a link


def test_the_page_allows_no_script_but_its_own(connect: Any) -> None:
    client = connect()
    page = client.get("/")
    assert page.headers["content-security-policy"] == PAGE_POLICY
    assert "script-src 'self'" in PAGE_POLICY
    assert "unsafe" not in PAGE_POLICY
    assert "<script>" not in page.text
    for name, content in load_assets().items():
        text = content.decode()
        assert "innerHTML" not in text, name
        assert "http://" not in text.replace("http://www.w3.org/", ""), name
        assert "https://" not in text, name
    api = client.get("/api/session").headers
    assert (api["x-content-type-options"], api["cache-control"]) == ("nosniff", "no-store")


@pytest.mark.parametrize(
    "path",
    [
        "/../pyproject.toml",
        "/..%2f..%2fetc%2fpasswd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/assets/../app.py",
        "/app.py",
        "/__init__.py",
        "//etc/passwd",
        "/.%00/index.html",
        "/reports/..%2f..%2fanswers.jsonl",
        "/api/files/..%2fanswers.jsonl/export",
        "/api/files/%2e%2e/export",
    ],
)
def test_no_path_leads_out(answers: Path, path: str) -> None:
    with running(make_studio(answers)) as url:
        connection = http.client.HTTPConnection(url.split("/")[2], timeout=10)
        connection.putrequest("GET", path, skip_host=True)  # as it is: clients would normalise it
        connection.putheader("Host", "localhost")
        connection.endheaders()
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
    assert response.status == 404
    assert "root:" not in text
    assert "import" not in text


def test_a_token_is_demanded(connect: Any) -> None:
    client = connect(token=TOKEN)
    assert client.get("/api/session").json() == {"ok": False, "folder": "", "files": [], "critic": None, "model": None}
    assert client.get("/").status_code == 200  # the page alone says nothing
    assert client.get("/api/runs").status_code == 401
    assert client.get("/reports/studio").status_code == 401
    for wrong in ("", "wrong", TOKEN[:-1], TOKEN + "x", "é" * 20):
        assert client.post("/api/session", json={"token": wrong}).status_code == 401
        assert client.get("/api/runs", headers={"Authorization": f"Bearer {wrong}".encode()}).status_code == 401
    assert client.get("/api/runs", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
    entered = client.post("/api/session", json={"token": TOKEN})
    assert entered.json()["ok"]
    cookie = entered.headers["set-cookie"].lower()
    assert cookie.startswith(COOKIE)
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert client.get("/api/runs").status_code == 200


def test_who_needs_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEXT2GRAD_STUDIO_TOKEN", raising=False)
    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "127.8.8.8")] == [True] * 4
    assert [is_loopback(host) for host in ("0.0.0.0", "::", "10.0.0.7", "example.org", "")] == [False] * 5
    assert choose_token("127.0.0.1") is None
    first, second = choose_token("0.0.0.0"), choose_token("0.0.0.0")
    assert first is not None
    assert len(first) >= 32
    assert first != second
    monkeypatch.setenv("TEXT2GRAD_STUDIO_TOKEN", TOKEN)
    assert choose_token("0.0.0.0") == TOKEN
    for unfit in ("short", "x" * 201, "sixteen or more &=+%41"):
        monkeypatch.setenv("TEXT2GRAD_STUDIO_TOKEN", unfit)
        with pytest.raises(UserError, match="16 to 200 letters, digits"):
            choose_token("0.0.0.0")


def test_a_large_upload_is_refused_and_the_studio_stays_up(answers: Path) -> None:
    piece, pieces = b"x" * (1 << 20), 100
    with running(make_studio(answers), max_body_bytes=1 << 20) as url:
        address = url.split("/")[2]
        connection = http.client.HTTPConnection(address, timeout=60)
        connection.putrequest("PUT", "/api/files/x/records/0/annotation")
        for name, value in {**CHANGE, "Content-Type": "application/json", "Transfer-Encoding": "chunked"}.items():
            connection.putheader(name, value)
        connection.endheaders()
        for _ in range(pieces):
            connection.send(b"%x\r\n%s\r\n" % (len(piece), piece))
        connection.send(b"0\r\n\r\n")
        assert connection.getresponse().status == 413
        connection.close()
        again = http.client.HTTPConnection(address, timeout=10)
        again.request("GET", "/api/session")
        assert again.getresponse().status == 200
        again.close()


def test_scripts_in_texts_and_names_stay_text(connect: Any, tmp_path: Path) -> None:
    folder = tmp_path / "<script>alert(1)<"
    folder.mkdir()
    path = write_answers(folder).rename(folder / "<img src=x onerror=alert(2)>.jsonl")
    client = connect(path)
    evil = "</script><script>alert(3)</script>"
    saved = client.put(f"{files(client)}/records/0/annotation", json={**BODY, "annotator": evil, "critique": evil})
    assert saved.headers["content-type"] == "application/json"
    exported = client.get(f"{files(client)}/export?annotator={evil}")
    assert exported.headers["content-disposition"] == 'attachment; filename="feedback.jsonl"'
    assert exported.headers["content-type"] == "application/json"
    assert "html" not in client.get("/<script>alert(1)</script>").headers["content-type"]


@pytest.mark.parametrize("text", ["\\ud800", "\\udfff and more"])
def test_half_characters_are_refused(connect: Any, text: str) -> None:
    client = connect()
    body = json.dumps({**BODY, "critique": "TEXT"}).replace("TEXT", text)
    refused = client.put(
        f"{files(client)}/records/0/annotation", content=body, headers={"Content-Type": "application/json"}
    )
    assert refused.status_code == 422
    assert COMPLETIONS["plain"] in client.get(f"{files(client)}/records/0?annotator=Mia").json()["completion"]
