"""The examples run, with a tiny model under the name of the default one and few steps."""

from __future__ import annotations

import contextlib
import io
import json
import re
import runpy
from pathlib import Path

import pytest
from docs_support import cache_with

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture
def cache(tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = cache_with(tmp_path / "cache", tiny_model)
    monkeypatch.setenv("TEXT2GRAD_CACHE", str(folder))
    return folder


@pytest.mark.usefixtures("cache")
def test_custom_critic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["custom_critic.py", "--steps", "2", "--output", str(tmp_path / "run")])
    runpy.run_path(str(EXAMPLES / "custom_critic.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert len(re.findall(r"^(?:before|after): ", printed, re.MULTILINE)) == 4
    assert "would pay more" not in printed
    assert (tmp_path / "run" / "checkpoints" / "final").is_dir()


@pytest.mark.usefixtures("cache")
def test_human_comments_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Executes the cells in order, in one namespace, as Jupyter does."""
    (tmp_path / "comments.csv").write_text((EXAMPLES / "comments.csv").read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    notebook = json.loads((EXAMPLES / "human_comments.ipynb").read_text(encoding="utf-8"))
    names: dict[str, object] = {"__name__": "__main__"}
    printed = io.StringIO()
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == "code":
            source = "".join(cell["source"]).replace("max_steps=8", "max_steps=1")
            with contextlib.redirect_stdout(printed):
                exec(compile(source, f"cell {number}", "exec"), names)
    assert "24 answers with comments" in printed.getvalue()
    assert printed.getvalue().count("after: ") == 4


def test_the_tutorial_has_the_comments_of_the_example() -> None:
    page = (EXAMPLES.parent / "docs" / "tutorial.md").read_text(encoding="utf-8")
    assert (EXAMPLES / "comments.csv").read_text(encoding="utf-8") in page
