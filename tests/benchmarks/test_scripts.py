"""Every benchmark can be imported and explains its options, and every name that it imports from the package exists."""

import ast
import importlib
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SCRIPTS = sorted((ROOT / "benchmarks").glob("*.py"))
# Extras that the development environment may lack.
NEEDS = {
    "comments_folds": "lightgbm",
    "defacto_folds": "lightgbm",
    "train_freeform": "lightgbm",
    "train_places": "lightgbm",
    "train_stance": "scipy",
    "verl_equality": "verl",
}


def imported_names(source: str) -> Iterator[tuple[str, str]]:
    """Yield (module, name) for imports from the package, inside functions and embedded programs too."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.ImportFrom(module=str(module), names=names) if module.split(".")[0] == "text2grad":
                yield from ((module, alias.name) for alias in names)
            case ast.Constant(value=str(text)) if "import" in text and "text2grad" in text:
                try:
                    yield from imported_names(text)
                except SyntaxError:
                    continue  # prose that mentions an import


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_imports_and_shows_its_help(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if extra := NEEDS.get(script.stem):
        pytest.importorskip(extra)
    source = script.read_text(encoding="utf-8")
    if "__main__" not in source or not ("options(" in source or "argparse" in source):
        importlib.import_module(script.stem)
        return
    monkeypatch.setattr(sys, "argv", [script.name, "--help"])
    with pytest.raises(SystemExit) as stopped:
        runpy.run_path(str(script), run_name="__main__")
    assert stopped.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: {script.name}")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_names_imported_from_the_package_exist(script: Path) -> None:
    missing = [
        f"{module}.{name}"
        for module, name in imported_names(script.read_text(encoding="utf-8"))
        if not hasattr(importlib.import_module(module), name) and find_spec(f"{module}.{name}") is None
    ]
    assert missing == []


@pytest.mark.slow
def test_attributes_and_arguments_exist() -> None:
    """Names that are used inside functions, which importing does not check."""
    command = [sys.executable, "-m", "mypy", "--explicit-package-bases", "--ignore-missing-imports", *map(str, SCRIPTS)]
    environment = os.environ | {"MYPYPATH": f"{ROOT / 'src'}:{ROOT / 'benchmarks'}"}
    checked = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    unknown = re.compile(r"^benchmarks/.*\[(attr-defined|call-arg|name-defined|import-not-found)\]$", re.MULTILINE)
    assert [match[0] for match in unknown.finditer(checked.stdout)] == [], checked.stdout
    assert re.search(r"^(Found \d+ error|Success)", checked.stdout, re.MULTILINE), checked.stderr


def test_imports_are_found_inside_functions_and_embedded_programs() -> None:
    source = 'PROGRAM = """\nfrom text2grad.schema import Span\n"""\ndef f():\n    from text2grad import Example\n'
    assert set(imported_names(source)) == {("text2grad.schema", "Span"), ("text2grad", "Example")}
