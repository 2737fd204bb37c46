"""Text that stays text in Markdown and in its front matter."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from text2grad.checkpoint.markdown import LICENSE_LINE, code, fenced, front_matter, split_front_matter, table

HOSTILE = ["a`b``c", "`", "``` </code><script>", "x | y", "---\nlicense: mit\n---", "a\n\n# b", "<img src=x>", "[a](b)"]
text = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1) | st.sampled_from(HOSTILE)
renderer = MarkdownIt("commonmark").enable("table")


@given(text)
def test_a_fenced_block_is_one_block_and_nothing_else(value: str) -> None:
    (token,) = renderer.parse(fenced(value, "yaml"))
    assert (token.type, token.info) == ("fence", "yaml")
    assert token.content.rstrip() == value.rstrip()


@pytest.mark.parametrize("value", HOSTILE)
def test_inline_code_is_one_span_even_in_a_table(value: str) -> None:
    tokens = renderer.parse(table(["", ""], [["name", code(value)]]))
    cells = [token for token in tokens if token.type == "inline"][-2:]
    assert cells[0].content == "name"
    assert [child.type for child in cells[1].children or []] == ["code_inline"]
    assert (cells[1].children or [])[0].content == " ".join(value.split())


@given(text)
def test_front_matter_holds_any_name_and_ends_where_it_should(value: str) -> None:
    written = front_matter({"base_model": value, "tags": ["a"]}) + "\n# Title\n"
    values, body = split_front_matter(written)
    assert values == {"base_model": " ".join(value.split()), "tags": ["a"]}
    assert body == "\n# Title\n"


def test_a_missing_licence_is_left_to_the_user_and_a_given_one_stays() -> None:
    assert LICENSE_LINE in front_matter({"tags": []})
    assert LICENSE_LINE not in front_matter({"license": "mit"})
    assert split_front_matter(front_matter({"license": "mit"})) == ({"license": "mit"}, "")


def test_text_without_or_with_broken_front_matter() -> None:
    assert split_front_matter("# Title\n---\n") == ({}, "# Title\n---\n")
    with pytest.raises(yaml.YAMLError):
        split_front_matter("---\na: [\n---\n")
