"""ASGI middleware that refuses requests from foreign web pages and with excessive headers.

A page that somebody opens in a browser can send requests to servers on that machine, and read the responses where its
own name resolves to 127.0.0.1 (DNS rebinding). The Host header then has the page's name, or the Origin header differs.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

ANY = "*"
_LOCAL = ("localhost", "127.0.0.1", "::1")
_HOST = re.compile(r"(?:\[(?P<ipv6>[0-9a-f:.]+)\]|(?P<name>[^\[\]:/@\s]+))(?::\d{1,5})?", re.IGNORECASE)
_MAX_SHOWN = 100
SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class RequestGuardMiddleware:
    """Responds with 431 to excessive headers, 421 to a foreign Host and 403 to a foreign Origin.

    Allowed hosts are localhost, the address that the request arrived at, and `allowed_hosts`; "*" allows all. An Origin
    has to be the Host itself. Every response gets SECURITY_HEADERS, unless it has its own.
    """

    def __init__(self, app: ASGIApp, allowed_hosts: Iterable[str], max_headers: int, max_header_bytes: int) -> None:
        self._app = app
        self._allowed_hosts = {*_LOCAL, *(host.lower() for host in allowed_hosts)}
        self._max_headers = max_headers
        self._max_header_bytes = max_header_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def secured_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name.lower() for name, _ in message["headers"]}
                missing = [(n.lower().encode(), v.encode()) for n, v in SECURITY_HEADERS.items()]
                message["headers"] = [*message["headers"], *(item for item in missing if item[0] not in present)]
            await send(message)

        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif (refusal := self._refusal(scope)) is None:
            await self._app(scope, receive, secured_send)
        else:
            status, detail = refusal
            body = json.dumps({"detail": detail}).encode()
            headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
            await secured_send({"type": "http.response.start", "status": status, "headers": headers})
            await secured_send({"type": "http.response.body", "body": body})

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers: Sequence[tuple[bytes, bytes]] = scope["headers"]
        num_bytes = sum(len(name) + len(value) for name, value in headers) + len(scope.get("raw_path") or b"")
        if len(headers) > self._max_headers or num_bytes + len(scope["query_string"]) > self._max_header_bytes:
            return 431, f"more than {self._max_headers} headers, or more than {self._max_header_bytes} bytes of them"
        hosts, origins = (_values(headers, name) for name in (b"host", b"origin"))
        if len(hosts) != 1 or not self._is_allowed(hosts[0], scope):
            shown = ", ".join(hosts)[:_MAX_SHOWN]
            return 421, f'the host "{shown}" is not allowed; if it is this server, start it with --allowed-host'
        if any(_host_of(origin) != hosts[0].lower() for origin in origins):
            return 403, "requests from web pages of other origins are not allowed"
        return None

    def _is_allowed(self, host: str, scope: Scope) -> bool:
        if ANY in self._allowed_hosts:
            return True
        match = _HOST.fullmatch(host)
        if match is None:
            return False
        name = (match["ipv6"] or match["name"]).lower()
        arrived_at = (scope.get("server") or ("",))[0]
        return name in self._allowed_hosts or (_is_address(name) and name == arrived_at)


def _values(headers: Sequence[tuple[bytes, bytes]], name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in headers if key.lower() == name]


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _host_of(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None
