"""What PyPI gets: a README whose links work there, and metadata that agrees with the code."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import version
from pathlib import Path

from typer.testing import CliRunner

import text2grad
from text2grad.cli.app import app

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def published_readme() -> str:
    """The README after the substitutions of the build."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for one in PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(one["pattern"], one["replacement"], text)
    return text


def test_every_link_of_the_published_readme_is_absolute() -> None:
    links = re.findall(r"\]\(([^)]+)\)", published_readme())
    assert len(links) > 10
    assert not [link for link in links if not link.startswith(("https://", "#"))]
    assert "<!--" not in published_readme()
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", published_readme())
    raw = "https://raw.githubusercontent.com/text2grad/text2grad/main/"  # a page about a picture is no picture
    assert pictures
    assert all(link.startswith(raw) and (ROOT / link.removeprefix(raw)).is_file() for link in pictures)


def test_every_version_is_the_same() -> None:
    said = CliRunner().invoke(app, ["--version"]).output.split()[-1]
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert {said, text2grad.__version__, PROJECT["project"]["version"]} == {version("text2grad")}
    assert cited is not None
    assert cited[1].strip("\"'") == version("text2grad")


def test_ci_runs_every_snippet_of_the_documentation() -> None:
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert "run: make test-docs\n" in workflow
    assert re.search(
        r'^test-docs:.*\n\t\$\(PYTEST\) -m "" tests/test_docs\.py$', (ROOT / "Makefile").read_text(), re.MULTILINE
    )


def test_ci_tries_every_python_that_is_supported() -> None:
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    classified = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["project"]["classifiers"]))
    assert set(re.findall(r'"(3\.\d+)"', workflow)) == set(classified) == {"3.11", "3.12", "3.13"}
