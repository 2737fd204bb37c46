"""HTTP requests to a vLLM server that may go down and come back."""

from __future__ import annotations

import http.client
import json
import logging
import time
import urllib.error
import urllib.request
from typing import Any

from text2grad.errors import UserError

TIMEOUT = 600  # seconds per request
HEALTH_TIMEOUT = 10
POLL_SECONDS = 2.0
log = logging.getLogger(__name__)


class ServerDownError(Exception):
    """The server does not answer; it may be restarting."""


class Connection:
    """A server at `url`. timeout: seconds that `wait` waits. command: how the user starts the server."""

    def __init__(self, url: str, timeout: float, command: str) -> None:
        self.url, self.command = url.rstrip("/"), command
        self._timeout = timeout

    def call(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """Send a GET request, or with a body a POST request; return the JSON of the reply.

        Raises ServerDownError where the server is down, and UserError where it refuses.
        """
        try:
            return json.loads(self.send(path, body))
        except ValueError as error:
            raise UserError(f"{self.url}{path} is not a vLLM server; set vllm_server_base_url") from error

    def send(self, path: str, body: dict[str, Any] | None = None, timeout: float = TIMEOUT) -> bytes:
        """As `call`; return the reply as it is."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=timeout) as response:
                return bytes(response.read())
        except urllib.error.HTTPError as error:
            with error:
                detail = error.read().decode(errors="replace")[:300]
            if error.code >= 500 and path != "/health" and not self.is_healthy():
                raise ServerDownError(f"{error.code} to {path}") from error
            raise UserError(
                f"the vLLM server at {self.url} answers {error.code} to {path} ({detail}); start it with: "
                f"{self.command}"
            ) from error
        except (OSError, http.client.HTTPException) as error:
            raise ServerDownError(str(error)) from error

    def is_healthy(self) -> bool:
        """Whether the server answers and its engine runs."""
        try:
            self.send("/health", timeout=HEALTH_TIMEOUT)
        except (ServerDownError, UserError):
            return False
        return True

    def wait(self, reason: object) -> None:
        """Return when the server answers again. reason: what went wrong, for the log."""
        log.warning(
            "the vLLM server at %s failed (%s); waiting up to %.0f seconds until it answers. Start it with: %s",
            self.url,
            reason,
            self._timeout,
            self.command,
        )
        began = time.monotonic()
        while not self.is_healthy():
            if time.monotonic() - began > self._timeout:
                raise UserError(
                    f"no vLLM server answers at {self.url} ({reason}); start one: {self.command}. Then run the same "
                    f"command with --resume, if the run had begun"
                )
            time.sleep(min(POLL_SECONDS, self._timeout))
        log.warning("the vLLM server at %s answers after %.0f seconds", self.url, time.monotonic() - began)
