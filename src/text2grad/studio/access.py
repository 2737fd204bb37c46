"""Who may use the studio: a token where other machines can reach it, and no requests of other web pages."""

from __future__ import annotations

import ipaddress
import os
import re
import secrets

from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from text2grad.errors import UserError

TOKEN_VARIABLE = "TEXT2GRAD_STUDIO_TOKEN"
COOKIE = "text2grad_studio"
HEADER = "x-text2grad-studio"  # a page of another origin cannot send it without asking, and is refused
_TOKEN = re.compile(r"[A-Za-z0-9_-]{16,200}")
_PRIVATE = ("/api/", "/reports/")
_SESSION = "/api/session"
_READING = ("GET", "HEAD")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server on this address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def choose_token(host: str) -> str | None:
    """Return the token that requests need: none on loopback, else that of the environment, or a new one."""
    given = os.environ.get(TOKEN_VARIABLE)
    if given is not None and not _TOKEN.fullmatch(given):
        raise UserError(f"{TOKEN_VARIABLE} is not a token: it needs 16 to 200 letters, digits, - and _")
    if given is not None:
        return given
    return None if is_loopback(host) else secrets.token_urlsafe(24)


class AccessMiddleware:
    """Responds with 401 without the token, and with 403 to what another web page may have sent."""

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (refusal := self._refusal(HTTPConnection(scope), scope["method"])):
            status, detail = refusal
            await JSONResponse({"detail": detail}, status)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _refusal(self, request: HTTPConnection, method: str) -> tuple[int, str] | None:
        path = request.url.path
        is_foreign = request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none")
        if is_foreign and (path.startswith(_PRIVATE) or method not in _READING):  # a link to the page does no harm
            return 403, "requests from web pages of other origins are not allowed"
        if method not in _READING and HEADER not in request.headers:
            return 403, f"the header {HEADER} is missing; only the studio's own page may change something"
        if path.startswith(_PRIVATE) and path != _SESSION and not self.has_token(request):
            return 401, "the token is missing or wrong; open the address that the studio printed"
        return None

    def has_token(self, request: HTTPConnection) -> bool:
        """Whether a request has the token, in its cookie or as a bearer token."""
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        sent = bearer if scheme.lower() == "bearer" else request.cookies.get(cookie_name(request), "")
        return is_token(sent, self._token)


def cookie_name(request: HTTPConnection) -> str:
    """Return the name of the cookie; browsers send the cookies of a host to all of its ports."""
    return f"{COOKIE}_{request.url.port or 80}"


def is_token(sent: str, token: str | None) -> bool:
    """Whether the right token was sent; compared in constant time."""
    return token is None or secrets.compare_digest(sent.encode(), token.encode())
