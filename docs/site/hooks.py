"""MkDocs hooks: the pages that are generated at build time, links that leave docs/, and inlined pictures."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))
import reference

ROOT = Path(__file__).parents[2]
REPOSITORY = "https://github.com/text2grad/text2grad/blob/main/"
# Pages that lie in the root of the repository, where GitHub looks for them.
ROOT_PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
LINK = re.compile(r"\]\(([^)#\s:]+)((?:#[^)\s]*)?)\)")
PICTURE = re.compile(r'<img alt="([^"]*)" src="(pictures/[^"]+\.svg)"\s*/?>')


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the repository's root, and the reference, which is made from the code."""
    made = {page: (ROOT / source).read_text(encoding="utf-8") for source, page in ROOT_PAGES.items()}
    for path, content in (made | reference.pages()).items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links to files of the repository to the site's own page, or else to the repository."""
    source = {made: name for name, made in ROOT_PAGES.items()}.get(page.file.src_uri)
    folder = ROOT if source else ROOT / "docs"

    def resolve(link: re.Match[str]) -> str:
        target = (folder / link[1]).resolve()
        if not target.exists() or not target.is_relative_to(ROOT):
            return link[0]  # a page that is generated, or a mistake: MkDocs tells
        name = target.relative_to(ROOT).as_posix()
        if name in ROOT_PAGES:
            return f"]({ROOT_PAGES[name]}{link[2]})"
        inside = name.startswith("docs/")
        return f"]({name.removeprefix('docs/') if inside else REPOSITORY + name}{link[2]})"

    return LINK.sub(resolve, markdown)


def on_page_content(html: str, page: Any, config: MkDocsConfig, **_: Any) -> str:
    """Put pictures into the page itself, where they take its colours, light or dark."""

    def inline(image: re.Match[str]) -> str:
        path = Path(config.docs_dir) / page.file.src_uri
        svg = (path.parent / image[2]).read_text(encoding="utf-8")
        return re.sub(r"<style>.*?</style>", "", svg, flags=re.DOTALL)

    return PICTURE.sub(inline, html)
