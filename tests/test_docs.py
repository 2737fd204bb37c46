"""What the documentation names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import text2grad

ROOT = Path(__file__).parent.parent
SOURCE = Path(text2grad.__file__).parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])


def test_every_file_of_the_architecture_is_in_the_room_that_it_is_listed_in() -> None:
    sections = re.split(r"^## ", (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    listed = 0
    for section in sections:
        room = re.search(r"\(`(\w+)/`\)$", section.partition("\n")[0])
        if room is None:
            continue
        for cell in re.findall(r"^\| (`[^|]+`) \|", section, flags=re.MULTILINE):
            for name in re.findall(r"`([\w/]+\.py)`", cell):
                assert (SOURCE / room[1] / name).is_file(), f"{room[1]}/{name}"
                listed += 1
    assert listed > 40


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_that_a_page_names_exists(page: Path) -> None:
    """Paths with a folder, as `lm/flat.py`, are of the package or of the repository."""
    named = re.findall(r"`((?:\w+/)+[\w.]+\.(?:py|yaml|md|json))`", page.read_text(encoding="utf-8"))
    missing = [path for path in named if not any((base / path).is_file() for base in (ROOT, SOURCE))]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not missing
