"""Helpers of the browser tests: opening the studio, and selecting words as a person does."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import BrowserContext, Page, expect

# Where to press and to release the mouse to select [start, end) in UTF-16 units of the answer.
_CORNERS = """
([selector, start, end]) => {
  const root = document.querySelector(selector);
  const at = (offset) => {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    let left = offset;
    while (walker.nextNode()) {
      if (left < walker.currentNode.length) return [walker.currentNode, left];
      left -= walker.currentNode.length;
    }
  };
  const rect = (offset) => {
    const [node, from] = at(offset);
    const range = document.createRange();
    range.setStart(node, from);
    range.setEnd(node, from + (node.data.codePointAt(from) > 0xffff ? 2 : 1));
    return range.getBoundingClientRect();
  };
  const rtl = getComputedStyle(root).direction === "rtl";
  const [first, last] = [rect(start), rect(end - 1)];
  const y = (box) => box.top + box.height / 2;
  const near = (box, right) => (right ? box.right - box.width * 0.2 : box.left + box.width * 0.2);
  return [near(first, rtl), y(first), near(last, !rtl), y(last)];
}
"""
expect.set_options(timeout=20_000)  # milliseconds; the default is short on a busy machine
SELECTED = "() => document.getSelection().getRangeAt(0).toString()"


def enter(context: BrowserContext, url: str, name: str = "Mia") -> Page:
    """Open the studio under a name; errors of the page fail the test."""
    page = context.new_page()
    page.on("pageerror", lambda error: (_ for _ in ()).throw(AssertionError(f"the page has an error: {error}")))
    page.goto(url)
    page.get_by_label("Your name").fill(name)
    page.get_by_role("button", name="Begin").click()
    expect(page.get_by_role("textbox", name="Answer 1", exact=True)).to_be_focused()
    return page


def open_answer(page: Page, index: int) -> None:
    """Open an answer by its place in the list."""
    page.locator(f'.rows a[data-index="{index}"]').click()
    expect(page.get_by_role("textbox", name=f"Answer {index + 1}", exact=True)).to_be_focused()


def drag(page: Page, text: str, words: str) -> str:
    """Select words with the mouse, and return what the browser says is selected."""
    before = len(text[: text.index(words)].encode("utf-16-le")) // 2
    length = len(words.encode("utf-16-le")) // 2
    start_x, start_y, end_x, end_y = page.evaluate(_CORNERS, [".answer", before, before + length])
    page.mouse.move(start_x, start_y)
    page.mouse.down()
    page.mouse.move((start_x + end_x) / 2, (start_y + end_y) / 2)
    page.mouse.move(end_x, end_y)
    page.mouse.up()
    return str(page.evaluate(SELECTED))


def saved(page: Page) -> None:
    """Wait until the page says that everything is saved."""
    expect(page.locator(".save-state.saved")).to_be_visible()


def spans_of(feedback: dict[str, Any], completion: str) -> list[str]:
    """Return the words of the spans of an exported record."""
    return [completion[span["start"] : span["end"]] for span in feedback["spans"]]
