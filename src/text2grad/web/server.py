"""A uvicorn server with limits on what clients send and how long they take."""

from __future__ import annotations

import functools
import socket
from typing import Annotated, Any

import uvicorn
from fastapi import FastAPI
from pydantic import Field, PositiveFloat, PositiveInt

from text2grad.errors import UserError
from text2grad.settings import Settings
from text2grad.web.body_limit import BodyLimitMiddleware
from text2grad.web.connection_limit import LimitedProtocol
from text2grad.web.request_guard import RequestGuardMiddleware

_BACKLOG = 2048  # connections that the kernel queues, as uvicorn's default


class WebSettings(Settings):
    """Address and limits of a server."""

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = Field(8008, description="0 picks a free one")
    allowed_hosts: list[str] = Field([], description='names of this server beside localhost and its address; "*": any')
    max_body_bytes: PositiveInt = Field(1 << 20, description="bytes per request body")
    body_timeout: PositiveFloat = Field(30.0, description="seconds that a request body may take to arrive")
    max_headers: PositiveInt = Field(64, description="headers per request")
    max_header_bytes: PositiveInt = Field(1 << 14, description="bytes of a request's headers")
    header_timeout: PositiveFloat = Field(10.0, description="seconds that the headers of a request may take")
    response_timeout: PositiveFloat = Field(30.0, description="seconds that a client may leave a response unread")
    max_connections: PositiveInt = Field(1024, description="open connections; more get 503")
    shutdown_timeout: PositiveInt = Field(30, description="seconds that running requests have to finish at shutdown")


def add_guards(app: FastAPI, settings: WebSettings, too_large: str) -> None:
    """Limit bodies and headers, and refuse foreign hosts and origins. too_large: the remedy for a large body."""
    app.add_middleware(
        BodyLimitMiddleware,
        max_bytes=settings.max_body_bytes,
        max_seconds=settings.body_timeout,
        remedy=too_large,
    )
    app.add_middleware(
        RequestGuardMiddleware,
        allowed_hosts=[settings.host, *settings.allowed_hosts],
        max_headers=settings.max_headers,
        max_header_bytes=settings.max_header_bytes,
    )


def create_server(app: FastAPI, settings: WebSettings) -> uvicorn.Server:
    """Create the uvicorn server that runs the application."""
    protocol: Any = functools.partial(
        LimitedProtocol,
        max_connections=settings.max_connections,
        header_timeout=settings.header_timeout,
        response_timeout=settings.response_timeout,
    )
    config = uvicorn.Config(
        app,
        http=protocol,
        h11_max_incomplete_event_size=settings.max_header_bytes,
        ws="none",
        proxy_headers=False,
        server_header=False,
        log_config=None,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=settings.shutdown_timeout,
    )
    return uvicorn.Server(config)


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket; raises UserError if the address cannot be used."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a host name"
        raise UserError(f"cannot listen on {host}:{port}: {reason}; choose another --host or --port") from error
    # Accepted connections inherit it; without it every small response waits 40 ms for an acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def address_of(listener: socket.socket) -> str:
    """Return the URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
