"""Runs the studio's server."""

from __future__ import annotations

import webbrowser
from contextlib import suppress

from text2grad.studio.app import create_app
from text2grad.studio.studio import Studio
from text2grad.web.server import WebSettings, address_of, bind, create_server

PORT = 8030
MAX_BODY_BYTES = 1 << 20


def serve(studio: Studio, settings: WebSettings, open_browser: bool = False) -> None:
    """Serve until SIGINT or SIGTERM. Prints the address, with the token where one is needed."""
    listener = bind(settings.host, settings.port)
    address = f"{address_of(listener)}/" + (f"#token={studio.token}" if studio.token else "")
    print(f"The studio is at {address}\nEvery edit is saved at once. Ctrl-C stops the studio.", flush=True)
    if open_browser:
        webbrowser.open(address)
    with suppress(KeyboardInterrupt):  # uvicorn raises it again once it has shut down
        create_server(create_app(studio, settings), settings).run(sockets=[listener])
