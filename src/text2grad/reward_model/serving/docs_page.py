"""The page /docs: the OpenAPI schema as plain HTML, without scripts and without anything from another server."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib import resources
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup


def render_docs(schema: dict[str, Any]) -> str:
    """Return the page of an OpenAPI schema."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["type"] = describe_type
    return environment.from_string(_load("docs.html.j2")).render(schema=schema, style=Markup(_style()))


def docs_policy() -> str:
    """Return the Content-Security-Policy of the page: its own style, by its hash, and nothing else."""
    digest = base64.b64encode(hashlib.sha256(_style().encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    )


def describe_type(schema: dict[str, Any]) -> str:
    """Return the type of a JSON schema in words: "list of Span", "string or null"."""
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "anyOf" in schema:
        return " or ".join(map(describe_type, schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(json.dumps(value) for value in schema["enum"])
    if "const" in schema:
        return json.dumps(schema["const"])
    if "prefixItems" in schema:
        return f"[{', '.join(map(describe_type, schema['prefixItems']))}]"
    if schema.get("type") == "array":
        return f"list of {describe_type(schema.get('items', {}))}"
    return str(schema.get("type", "anything"))


def _style() -> str:
    return _load("docs.css")


def _load(name: str) -> str:
    return (resources.files("text2grad.reward_model.serving") / name).read_text(encoding="utf-8")
