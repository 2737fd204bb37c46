"""The report of a run that is going on, served on the loopback interface: `text2grad run --watch`.

The page is built when a browser asks for it and the records have changed; training neither waits for it nor depends on
it. It asks whether there is something new, and reloads itself then. What was shown stays when the run has ended.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any, cast

from text2grad.errors import UserError
from text2grad.report.build import render_report
from text2grad.report.html import encodable, render_page
from text2grad.report.read import read_run

log = logging.getLogger(__name__)
FILES = ("metrics.jsonl", "samples.jsonl", "evaluation.json", "config.yaml")
MAX_LIVE_SAMPLES = 400  # the page is built while the model is trained, and on the same machine
SOCKET_TIMEOUT = 10.0
HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
}


class LivePage:
    """The page of a run folder as it is now; built anew only where its files have changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = Lock()
        self._built: tuple[str, bytes] = ("", b"")

    def version(self) -> str:
        """Return what identifies the records: sizes and times of the files of the run."""
        found = [path.stat() for name in FILES if (path := self.folder / name).is_file()]
        return '"' + "-".join(f"{file.st_size:x}.{file.st_mtime_ns:x}" for file in found) + '"'

    def render(self) -> tuple[str, bytes]:
        """Return the version and the page."""
        with self._lock:
            version = self.version()
            if self._built[0] != version:
                self._built = (version, self._render(version).encode())
            return self._built

    def _render(self, version: str) -> str:
        if not (self.folder / "metrics.jsonl").is_file():
            return render_page(
                "starting.html.j2", (), ("live.js", "starting.js"), version, name=self.folder.resolve().name
            )
        return encodable(render_report(read_run(self.folder, MAX_LIVE_SAMPLES), live=version))


@contextmanager
def watch(folder: Path) -> Iterator[str]:
    """Serve the report of a run folder, which need not exist yet, while the context lasts; yield the address."""
    server = _Server(("127.0.0.1", 0), _handler(LivePage(folder)))
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.2}, name="watch", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a browser that keeps its connection open does not keep the run from ending

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that went away is nothing to report; training goes on."""
        log.debug("the browser at %s went away", client_address, exc_info=True)


def _handler(page: LivePage) -> Callable[..., BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = SOCKET_TIMEOUT
        server_version, sys_version = "text2grad", ""

        def do_HEAD(self) -> None:
            """Tell the version, without building the page."""
            if self._is_allowed():
                self._answer(HTTPStatus.OK, page.version(), b"")

        def do_GET(self) -> None:
            """Return the page."""
            if not self._is_allowed():
                return
            try:
                self._answer(HTTPStatus.OK, *page.render())
            except UserError as error:
                self.send_error(HTTPStatus.SERVICE_UNAVAILABLE, explain=str(error))

        def _is_allowed(self) -> bool:
            port = cast(_Server, self.server).server_port
            if self.headers.get("Host") not in (f"127.0.0.1:{port}", f"localhost:{port}"):  # DNS rebinding
                self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
                return False
            if self.path != "/":
                self.send_error(HTTPStatus.NOT_FOUND)
                return False
            return True

        def _answer(self, status: HTTPStatus, version: str, body: bytes) -> None:
            self.send_response(status)
            for name, value in (HEADERS | {"ETag": version, "Content-Length": str(len(body))}).items():
                self.send_header(name, value)
            self.end_headers()
            if body:
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing: the terminal shows the run."""

    return Handler
