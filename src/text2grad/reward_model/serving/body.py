"""Request bodies of the reward server: bounded in size and time before anything is parsed, then strict JSON."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute
from pydantic_core import from_json
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_PAUSE = 0.005  # after each piece of a body that nobody reads, so that the others go first


class BodyLimit:
    """ASGI middleware: the whole body is here before the application begins, or it never begins.

    A body of more than max_bytes gets 413, announced or not; one that takes longer than max_seconds gets 408. Either is
    answered at once; then what the client still sends is read and thrown away for up to max_seconds, because a
    connection that is closed over unread data loses the answer on its way to the client.
    """

    def __init__(self, app: ASGIApp, max_bytes: int, max_seconds: float) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._max_seconds = max_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            async with asyncio.timeout(self._max_seconds):
                body = await self._read(scope, receive)
        except TooLargeError:
            await self._refuse(413, self._too_large(), receive, send)
        except TimeoutError:
            await self._refuse(408, self._too_slow(), receive, send)
        except GoneError:
            return
        else:
            await self._app(scope, _replay(body, receive), send)

    async def _read(self, scope: Scope, receive: Receive) -> bytes:
        if _announced_length(scope) > self._max_bytes:
            raise TooLargeError
        body = bytearray()
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise GoneError
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > self._max_bytes:
                raise TooLargeError
        return bytes(body)

    async def _refuse(self, status: int, detail: str, receive: Receive, send: Send) -> None:
        content = json.dumps({"detail": detail}).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(content)).encode()),
            (b"connection", b"close"),
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content, "more_body": True})
        await _throw_away(receive, self._max_seconds)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _too_large(self) -> str:
        return (
            f"the body is larger than {self._max_bytes} bytes: send fewer examples a request, or start the server with "
            f"a larger --max-body-bytes"
        )

    def _too_slow(self) -> str:
        return f"the body took longer than {self._max_seconds:g} seconds to arrive: send it faster, or in smaller parts"


class TooLargeError(Exception):
    """The body has more bytes than are read."""


class GoneError(Exception):
    """The client left before its request was complete."""


class JsonRoute(APIRoute):
    """Takes JSON only, and only what the standard calls JSON: UTF-8, no NaN, no unpaired surrogates."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_json(request: Request) -> Response:
            kind = request.headers.get("content-type", "")
            if kind.partition(";")[0].strip().lower() != "application/json":
                raise HTTPException(415, f'Content-Type is "{kind[:60]}": send the body as application/json')
            read = _JsonRequest(request.scope, request.receive)
            if not await read.body():
                raise HTTPException(400, 'the body is empty: send {"examples": [{"prompt": ..., "completion": ...}]}')
            return await handle(read)

        return handle_json


class _JsonRequest(Request):
    async def json(self) -> Any:
        try:
            return from_json(await self.body(), allow_inf_nan=False)
        except ValueError as error:
            remedy = "send JSON in UTF-8, without NaN, Infinity and unpaired surrogates"
            raise HTTPException(400, f"the body is not JSON: {error}; {remedy}") from error


async def until_disconnect(receive: Receive) -> None:
    """Returns when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _throw_away(receive: Receive, max_seconds: float) -> None:
    try:
        async with asyncio.timeout(max_seconds):
            while (await receive()).get("more_body", False):
                await asyncio.sleep(_PAUSE)
    except TimeoutError:
        pass  # it was long enough for anybody who listens


def _announced_length(scope: Scope) -> int:
    lengths = [int(value) for name, value in scope["headers"] if name == b"content-length"]
    return max(lengths, default=0)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Receives the body in one piece, then whatever comes after it."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return pending.pop() if pending else await receive()

    return replay
