"""Markdown for the hub, with user-supplied names and settings escaped."""

from __future__ import annotations

import re
from typing import Any

import yaml

LICENSE_LINE = "# license: yours to choose, within what the base model's licence allows\n"


def front_matter(values: dict[str, Any]) -> str:
    """Return the YAML block that the Hugging Face hub reads, with a reminder where the licence is missing."""
    block = yaml.safe_dump({key: _one_line(value) for key, value in values.items()}, sort_keys=False, width=1_000_000)
    return f"---\n{block}{'' if 'license' in values else LICENSE_LINE}---\n"


def split_front_matter(text: str) -> tuple[dict[str, Any], str]:
    """Return the values of the YAML block and the text below. Raises yaml.YAMLError where the block is not valid."""
    found = re.match(r"---\n(.*?)^---\n", text, flags=re.DOTALL | re.MULTILINE)
    if found is None:
        return {}, text
    return yaml.safe_load(found[1]) or {}, text[found.end() :]


def code(text: str) -> str:
    """Return inline code, for a sentence or a table cell."""
    line = str(_one_line(text)).replace("|", "\\|")
    ticks = "`" * (_longest_run(line) + 1)
    space = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{space}{line}{space}{ticks}"


def fenced(text: str, language: str = "") -> str:
    """Return a code block whose fence is longer than any in the text."""
    fence = "`" * max(_longest_run(text) + 1, 3)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n"


def table(header: list[str], rows: list[list[str]]) -> str:
    """Return a table; cells must be Markdown already."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _one_line(value: Any) -> Any:
    return " ".join(value.split()) if isinstance(value, str) else value


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
