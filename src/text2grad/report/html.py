"""Rendering of self-contained HTML pages: style, script and data are embedded, and nothing else is loaded or run."""

import base64
import hashlib
import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from text2grad.errors import UserError
from text2grad.files import replace_text

_MARKER = " · text2grad</title>"  # of all pages
BASE_STYLE = "base.css"  # colours, typography, header and cards of every page


def render_page(
    template: str, styles: Sequence[str], scripts: Sequence[str] = (), live: str | None = None, **context: Any
) -> str:
    """Render a template of `assets/` with `style`, `script`, `policy` and `live` defined, after the base style.

    live: the version of a page that is served, and may ask its own server whether there is a newer one. Values of
    `context` are escaped unless they are `Markup`, so text from a run never becomes markup.
    """
    style = "\n".join(map(load_asset, (BASE_STYLE, *styles)))
    script = "\n".join(map(load_asset, scripts))
    environment = Environment(
        loader=FunctionLoader(load_asset),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    policy = content_security_policy(style, script, asks_server=live is not None)
    return environment.get_template(template).render(
        style=Markup(style), script=Markup(script), policy=policy, live=live, **context
    )


def check_page(path: Path) -> None:
    """Refuse to replace a file that is no page of text2grad's."""
    if path.exists() and _MARKER not in path.read_text(encoding="utf-8", errors="replace")[:10_000]:
        raise UserError(f"{path} is no page of text2grad's; rename it, or move it away")


def write_page(path: Path, html: str) -> None:
    """Write a page completely, or leave the old one."""
    replace_text(path, encodable(html))


def encodable(html: str) -> str:
    """Return the page without lone surrogates, which cannot be encoded."""
    return html.encode("utf-8", errors="replace").decode("utf-8")


def content_security_policy(style: str, script: str, asks_server: bool = False) -> str:
    """Return a policy that allows exactly this style and this script, by their hashes.

    No request is allowed at all, or with `asks_server` those to the page's own server.
    """
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    return policy + "; connect-src 'self'" if asks_server else policy


def embed_json(value: Any) -> Markup:
    """Serialise to JSON that is safe inside a `<script>` element: pure ASCII, with <, > and & escaped."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def load_asset(name: str) -> str:
    """Return the text of a packaged file of `report/assets`."""
    return (resources.files("text2grad.report") / "assets" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
