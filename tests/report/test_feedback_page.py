"""The page of a feedback file: counts, and what a reader sees in a browser."""

from pathlib import Path
from typing import Any

import pytest

from text2grad.errors import UserError
from text2grad.report import build_feedback_report
from text2grad.schema import Example, Feedback, Omission, Span, write_examples

HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"


def commented(number: int, **feedback: Any) -> Example:
    said = Feedback(critic="human", **feedback)
    prompt = [
        {"role": "user", "content": "Hello."},
        {"role": "assistant", "content": "Hi."},
        {"role": "user", "content": f"When do we meet? {number}"},
    ]
    return Example.model_validate(
        {"id": f"e{number}", "prompt": prompt, "completion": "On 😀 Friday.", "feedback": said}
    )


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "feedback.jsonl"
    blame = Span(start=5, end=11, label="poor", phrase=(7, 13), reason="wrong day")
    write_examples(
        path,
        [
            commented(1, critique="It says Friday.", spans=[blame.model_copy(update={"phrase": (8, 14)})]),
            commented(2, critique="Fine.", spans=[Span(start=0, end=2, label="good")], score=0.5),
            commented(3, critique=HOSTILE, omissions=[Omission(text="the time")], unmatched=["noon"]),
            Example(id="e4", prompt="p", completion="x", feedback=Feedback.failure("human", "about no part: of it")),
            commented(5, critique="Hm."),
            Example(id="e6", prompt="p", completion="x"),
        ],
    )
    return path


def test_the_header_counts_what_was_said(source: Path) -> None:
    page = build_feedback_report(source)
    assert page == source.with_suffix(".html")
    html = page.read_text(encoding="utf-8")
    for title, count in {
        "completions": 6, "with feedback": 4, "failed": 1, "without feedback": 1, "neither praise nor blame": 1,
        "blamed spans": 1, "praised spans": 1, "omissions": 1, "quotations not found": 1,
    }.items():  # fmt: skip
        assert f"<dt>{title}</dt><dd>{count}</dd>" in html
    assert "1 × about no part" in html
    assert "<img src=x" not in html


def test_a_large_file_is_subsampled_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl"
    write_examples(path, [commented(i, critique="Hm.") for i in range(30)])
    html = build_feedback_report(path, limit=7).read_text(encoding="utf-8")
    assert "Showing 7 of 30 completions" in html
    assert html.count('"id":"e') == 7


def test_only_pages_of_its_own_are_replaced(source: Path) -> None:
    build_feedback_report(source)
    build_feedback_report(source)
    source.with_suffix(".html").write_text("<title>mine</title>")
    with pytest.raises(UserError, match=r"feedback\.html is no page of text2grad's"):
        build_feedback_report(source)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("\n")
    with pytest.raises(UserError, match=r"a\.jsonl: no examples"):
        build_feedback_report(tmp_path / "a.jsonl")


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (360, "dark")])
def test_the_page_loads_without_errors_and_fits_the_screen(browser: Any, source: Path, width: int, scheme: str) -> None:
    browser.open(build_feedback_report(source), width=width, scheme=scheme)
    assert browser.evaluate("document.querySelectorAll('#feedback .example').length") == 6
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    right = "(selector) => document.querySelector(selector).getBoundingClientRect().right"
    assert browser.evaluate(f"({right})('#theme') === ({right})('.bar')")
    assert browser.evaluate("window.hacked") is None
    assert browser.errors() == []


def test_phrases_highlight_their_words(browser: Any, source: Path) -> None:
    browser.open(build_feedback_report(source))
    browser.hover("#feedback .phrase")
    marked = "Array.from(document.querySelectorAll('.completion .highlighted')).map((n) => n.textContent).join('')"
    assert browser.evaluate(marked) == "Friday"


def test_filters_and_search_select(browser: Any, source: Path) -> None:
    browser.open(build_feedback_report(source))
    shown = "Array.from(document.querySelectorAll('#feedback .example strong')).map((n) => n.textContent)"
    ids = f"{shown}.filter((text) => /^e\\d$/.test(text)).join(' ')"
    for kind, expected in {"poor": "e1", "good": "e2", "missing": "e3", "failed": "e4", "none": "e4 e5 e6"}.items():
        browser.evaluate(f"document.querySelector('[data-kind={kind}]').click()")
        assert browser.evaluate(ids) == expected
    browser.evaluate("document.querySelector('[data-kind=all]').click()")
    browser.evaluate(
        "const box = document.querySelector('#filters input'); box.value = 'FINE'; "
        "box.dispatchEvent(new Event('input'))"
    )
    assert browser.evaluate(ids) == "e2"
    assert browser.errors() == []
