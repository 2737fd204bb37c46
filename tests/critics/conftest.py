"""A chat-completions server with scripted responses."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from text2grad.critics.llm.critic import LLMCritic


@dataclass(frozen=True)
class Served:
    """One HTTP response. `cut`: the connection closes in the middle of the body. `delay`: seconds before it starts."""

    status: int = 200
    body: str | bytes = ""
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut: bool = False


def chat_completion(
    content: str | None, tokens: tuple[int, int] | None = (100, 20), finish: str = "stop", **message: Any
) -> Served:
    """A chat completion."""
    body: dict[str, Any] = {"choices": [{"message": {"content": content, **message}, "finish_reason": finish}]}
    if tokens:
        body["usage"] = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1]}
    return Served(body=json.dumps(body))


class Server:
    """Serve `script` from front to back, then `always`; keep every request."""

    def __init__(self) -> None:
        self.script: list[Served] = []
        self.always = Served(500, "the script is over")
        self.requests: list[dict[str, Any]] = []
        self.arrivals: list[float] = []
        self.keys: list[str | None] = []
        self.in_flight = self.max_in_flight = 0
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["content-length"])))
                with server._lock:
                    server.arrivals.append(time.monotonic())
                    server.requests.append(request)
                    server.keys.append(self.headers["authorization"])
                    served = server.script.pop(0) if server.script else server.always
                    server.in_flight += 1
                    server.max_in_flight = max(server.max_in_flight, server.in_flight)
                time.sleep(served.delay)
                with server._lock:
                    server.in_flight -= 1
                body = served.body.encode() if isinstance(served.body, str) else served.body
                try:
                    self.send_response(served.status)
                    self.send_header("content-type", "application/json")
                    self.send_header("content-length", str(len(body)))
                    for name, value in served.headers.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(body[: len(body) // 2] if served.cut else body)
                except (BrokenPipeError, ConnectionResetError):
                    pass  # the client has timed out
                self.close_connection = True

            def log_message(self, *_: Any) -> None:
                pass

        return Handler


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture
def critic(server: Server, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make a critic of that server, with short pauses between retries."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.01)

    def make(**options: Any) -> LLMCritic:
        return LLMCritic(**{"model": "m", "base_url": server.url, "timeout": 5.0, **options})

    return make


@pytest.fixture
def completion() -> Any:
    return chat_completion


@pytest.fixture
def served() -> type[Served]:
    return Served
