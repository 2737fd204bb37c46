"""The documentation is true: code runs, files and links exist, public names have docstrings."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from docs_support import SHELLS, Block, DocumentationRunner, cache_with, code_blocks

import text2grad

ROOT = Path(__file__).parent.parent
SOURCE = Path(text2grad.__file__).parent
README = ROOT / "README.md"
PAGES = [README, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PACKAGES = sorted(path for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file())


def is_slow(page: Path) -> bool:
    """Whether a page runs commands, which start Python and load torch each."""
    return page != README and any(block.language in SHELLS for block in code_blocks(page.read_text(encoding="utf-8")))


CODE = [pytest.param(page, marks=[pytest.mark.slow] if is_slow(page) else [], id=page.name) for page in PAGES]


def name(path: Path) -> str:
    return path.name


@pytest.mark.parametrize("page", CODE)
def test_the_code_of_a_page_runs(page: Path, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = DocumentationRunner(tmp_path, tiny_model)
    monkeypatch.setenv("TEXT2GRAD_CACHE", runner.environment["TEXT2GRAD_CACHE"])
    text = page.read_text(encoding="utf-8")
    blocks = code_blocks(text)
    skipped = len(re.findall(r"^ *<!-- no-test:", text, re.MULTILINE))
    assert len(blocks) + skipped == len(re.findall(r"^```(?:bash|sh|console|python)", text, re.MULTILINE))
    for block in blocks:
        monkeypatch.chdir(runner.current)
        runner.run(block, page.name)  # fails with the line of the page


SAMPLE = """
```console
$ echo one \\
    two > said
one
$ cd ..
```

<!-- no-test: needs a server -->
```bash
exit 1
```

```python
x = 1
```

```yaml
x: 1
```
"""


def test_blocks_are_extracted() -> None:
    assert code_blocks(SAMPLE) == [
        Block(3, "console", "echo one \\\n    two > said\ncd .."),
        Block(15, "python", "x = 1"),
    ]


def test_blocks_are_executed_with_a_tiny_model_and_few_steps(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = DocumentationRunner(tmp_path, tiny_model)
    monkeypatch.chdir(runner.current)
    runner.run(Block(1, "bash", "mkdir -p a && cd a\npip install nothing"), "page")
    assert runner.current.name == "a"
    runner.run(Block(1, "bash", "cd ..\ntext2grad train --feedback feedback.jsonl -o runs/taught"), "page")
    assert len((runner.folder / "runs/taught/metrics.jsonl").read_text().splitlines()) == 2
    runner.run(Block(1, "python", "max_steps=100\nassert max_steps == 2"), "page")
    with pytest.raises(AssertionError, match="page:7 failed"):
        runner.run(Block(7, "sh", "text2grad report nowhere | cat"), "page")
    with pytest.raises(NameError):
        runner.run(Block(9, "python", "print(unknown)"), "page")


def test_the_cache_replaces_the_default_model(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from text2grad.models.loading import resolve

    monkeypatch.setenv("TEXT2GRAD_CACHE", str(cache_with(tmp_path, tiny_model)))
    assert resolve("smollm2") == str(tmp_path / "smollm2")


def test_every_path_of_the_architecture_exists() -> None:
    """Paths may be relative to the package whose folder the section's heading has in parentheses."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    missing, found = [], 0
    for section in re.split(r"^#+ ", text, flags=re.MULTILINE):
        package = re.search(r"\(`(\w+/)`\)", section.partition("\n")[0])
        bases = [ROOT, SOURCE, *([SOURCE / package[1]] if package else [])]
        for path in re.findall(r"`([\w./-]+\.(?:py|md|toml)|(?:\w+/)+(?:[\w.-]+\.yaml)?)`", section):
            found += 1
            if not any((base / path).exists() for base in bases):
                missing.append(path)
    assert not missing
    assert found > 20


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_path_that_a_page_names_exists(page: Path) -> None:
    """Paths with a folder, as `models/packing.py`, are relative to the package or to the repository."""
    paths = re.findall(r"`((?:\w+/)+[\w.]+\.(?:py|yaml|md|json))`", page.read_text(encoding="utf-8"))
    assert not [path for path in paths if not any((base / path).is_file() for base in (ROOT, SOURCE))]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link and not link.startswith("reference/")]  # made by test_site
    assert not [link for link in local if not (page.parent / link).exists()]


@pytest.mark.parametrize("package", PACKAGES, ids=name)
def test_every_public_name_has_a_docstring(package: Path) -> None:
    undocumented = []
    for path in sorted(package.rglob("*.py")) if package.is_dir() else [package]:
        module = ast.parse(path.read_text(encoding="utf-8"))
        nodes = [
            node for node in module.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        ]
        public = [node for node in nodes if not node.name.startswith("_")]
        undocumented += [f"{path.name}:{node.name}" for node in public if not ast.get_docstring(node)]
        undocumented += [path.name] if not ast.get_docstring(module) else []
    assert not undocumented
