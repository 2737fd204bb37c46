"""ASGI middleware that limits the size of request bodies and the time they take to arrive."""

from __future__ import annotations

import asyncio

from fastapi import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class BodyLimitMiddleware:
    """Responds with 413 to a body of more than max_bytes, and with 408 to one that takes longer than max_seconds.

    The limits apply while the body arrives, whatever its Content-Length says. remedy: what the sender of a large body
    can do.
    """

    def __init__(self, app: ASGIApp, max_bytes: int, max_seconds: float, remedy: str) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._max_seconds = max_seconds
        self._remedy = remedy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        deadline = asyncio.get_running_loop().time() + self._max_seconds
        size = 0

        async def limited_receive() -> Message:
            nonlocal size
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
                    size += len(message.get("body", b""))
                    # Closing a connection with unread data can lose the response, so the rest is read and discarded.
                    while size > self._max_bytes and message.get("more_body", False):
                        message = await receive()
            except TimeoutError:
                raise _error(408, f"the body took longer than {self._max_seconds:g} seconds to arrive") from None
            if size > self._max_bytes:
                raise _error(413, f"the body is larger than {self._max_bytes} bytes: {self._remedy}")
            return message

        await self._app(scope, limited_receive, send)


def _error(status: int, detail: str) -> HTTPException:
    return HTTPException(status, detail, headers={"Connection": "close"})
