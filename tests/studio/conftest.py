"""A studio over a small file, through the test client and in a browser."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from studio_support import CHANGE, make_studio, write_answers

from text2grad.studio.app import create_app
from text2grad.web.server import WebSettings

if TYPE_CHECKING:
    from fastapi.testclient import TestClient
    from playwright.sync_api import Browser, BrowserContext

CHROMIUM = os.environ.get("TEXT2GRAD_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
Connect = Callable[..., "TestClient"]


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    return write_answers(tmp_path)


@pytest.fixture
def connect(answers: Path) -> Iterator[Connect]:
    """Returns clients of studios; what is passed goes to `make_studio`."""
    from fastapi.testclient import TestClient

    opened = []

    def make(path: Path = answers, headers: dict[str, str] | None = None, **parts: Any) -> TestClient:
        studio = make_studio(path, **parts)
        app = create_app(studio, WebSettings())
        sent = CHANGE if headers is None else headers
        client = TestClient(app, base_url="http://127.0.0.1", headers=sent, raise_server_exceptions=False)
        client.__enter__()
        opened.append(client)
        return client

    yield make
    for client in opened:
        client.__exit__()


@pytest.fixture(scope="module")  # its event loop would be in the way of other modules
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium: install it, or name it in TEXT2GRAD_CHROMIUM")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as started:
        # Chromium's own sandbox does not start in containers.
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context(viewport={"width": 1440, "height": 900}, accept_downloads=True)
    context.set_default_timeout(20_000)
    yield context
    context.close()
