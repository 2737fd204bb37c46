"""The documentation site builds strictly, is complete, needs no other server, and its pictures are the library's."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from pydantic import BaseModel

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs" / "site"))

import pictures  # noqa: E402
import reference  # noqa: E402


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does; a warning is an error."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("site")
    config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True)
    config.plugins.on_startup(command="build", dirty=False)
    build(config)
    config.plugins.on_shutdown()
    return folder


def test_every_page_is_built(site: Path) -> None:
    names = {path.with_suffix("").relative_to(site).as_posix() for path in site.rglob("*.html")}
    written = {path.stem for path in (ROOT / "docs").glob("*.md")}
    made = {"index", "contributing", "reference/commands", "reference/settings", "reference/schema", "reference/api"}
    assert written | made <= names


def test_nothing_is_loaded_from_other_servers(site: Path) -> None:
    loaded = re.compile(r"<(?:script|img|iframe)\b[^>]*\ssrc=.?https?:|<link\b[^>]*rel=.?(?:style|pre|ic)[^>]*https?:")
    for page in site.rglob("*.html"):
        assert not loaded.findall(page.read_text(encoding="utf-8")), page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?https?:|@import", sheet.read_text(encoding="utf-8")), sheet


def test_pictures_take_the_colours_of_the_page(site: Path) -> None:
    page = (site / "alignment.html").read_text(encoding="utf-8")
    assert '<svg xmlns="http://www.w3.org/2000/svg"' in page
    assert 'fill="currentColor"' in page
    assert "prefers-color-scheme:dark){svg" not in page


def test_the_reference_has_every_command_and_setting(site: Path) -> None:
    commands = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    for name in ("init", "run", "train", "annotate", "import", "reward-train", "critic-check"):
        assert f'id="{name}"' in commands
    settings = (site / "reference" / "settings.html").read_text(encoding="utf-8")
    for key in ("policy.learning_rate", "policy.corrections.weight", "model.lora.r", "credit.mode"):
        assert f"<code>{key}</code>" in settings


def documented(model: type[BaseModel]) -> list[tuple[type[BaseModel], str]]:
    """Every field of a model and of the models in it."""
    found = []
    for name, field in model.model_fields.items():
        found.append((model, name))
        section = reference.section_of(field)
        found += documented(section) if section is not None and section is not model else []
    return found


@pytest.mark.parametrize("model", [*reference.SETTINGS, *reference.SCHEMA], ids=lambda model: model.__name__)
def test_every_setting_and_field_has_help(model: type[BaseModel]) -> None:
    assert not [f"{owner.__name__}.{name}" for owner, name in documented(model) if not reference.help_of(owner, name)]


@pytest.mark.model
@pytest.mark.parametrize("name", pictures.PICTURES)
def test_pictures_show_what_the_library_computes(name: str, smollm2_tokenizer) -> None:
    committed = (pictures.FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    assert pictures.PICTURES[name](smollm2_tokenizer) == committed, (
        "run `python docs/site/pictures.py` and look at them"
    )
