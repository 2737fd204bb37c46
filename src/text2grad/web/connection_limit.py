"""uvicorn's HTTP protocol with limits on connections: how many, and how long a client may take."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

_FULL = b'{"detail": "too many connections: retry later"}'
_FULL_RESPONSE = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(_FULL), _FULL)
)


class LimitedProtocol(H11Protocol):
    """Closes connections beyond `max_connections`, and those that keep the server waiting.

    header_timeout: seconds from the opening of a connection, or from the last response, to the end of the next
        request's headers. uvicorn itself waits for ever for a client that sends a byte now and then.
    response_timeout: seconds that a client may leave a response unread.
    """

    def __init__(
        self, *args: Any, max_connections: int, header_timeout: float, response_timeout: float, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._max_connections = max_connections
        self._header_timeout = header_timeout
        self._response_timeout = response_timeout
        self._header_timer: asyncio.TimerHandle | None = None
        self._response_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self._max_connections:
            transport.write(_FULL_RESPONSE)
            transport.close()
        else:
            self._start_header_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_header_timer()
        self._stop_response_timer()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        previous = self.cycle
        super().handle_events()
        if self.cycle is not previous:  # the headers of a request are complete
            self._stop_header_timer()

    def on_response_complete(self) -> None:
        self._start_header_timer()  # before the next request, which may be here already
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stop_response_timer()
        self._response_timer = self.loop.call_later(self._response_timeout, self.transport.abort)

    def resume_writing(self) -> None:
        self._stop_response_timer()
        super().resume_writing()

    def _start_header_timer(self) -> None:
        self._stop_header_timer()
        self._header_timer = self.loop.call_later(self._header_timeout, self.transport.abort)

    def _stop_header_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _stop_response_timer(self) -> None:
        if self._response_timer is not None:
            self._response_timer.cancel()
            self._response_timer = None
