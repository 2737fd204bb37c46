"""The page of a comparison in a real browser."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from text2grad.evaluation.answers import METRICS
from text2grad.evaluation.pairwise import AnswerSet, compare_sets, shared_prompts
from text2grad.report.answer_sets import read_answer_sets
from text2grad.report.compare_page import MAX_SHOWN, Contender, render_comparison
from text2grad.schema import Example

HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"


def page_of(sets: list[AnswerSet], folder: Path) -> Path:
    baseline, *others = sets
    prompts = shared_prompts(sets)
    contenders = [Contender(one, compare_sets(baseline, one, prompts, 50, 0, METRICS)) for one in others]
    path = folder / "compare.html"
    path.write_text(render_comparison(baseline, contenders, prompts), encoding="utf-8")
    return path


@pytest.fixture
def page(make_run: Callable[..., Path], tmp_path: Path) -> Path:
    """Two runs; the second has the completions of the first before training, and fewer steps."""
    first = make_run(steps=12, samples=1)
    second = tmp_path / f"second {HOSTILE.replace('/', '')}"
    second.mkdir()
    lines = (first / "metrics.jsonl").read_text().splitlines()
    (second / "metrics.jsonl").write_text("\n".join(lines[:8]) + "\n")
    evaluation = json.loads((first / "evaluation.json").read_text())
    for example in evaluation["examples"]:
        example["after"] = example["before"]
    (second / "evaluation.json").write_text(json.dumps(evaluation))
    return page_of(read_answer_sets([second, first]), tmp_path)


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (360, "dark")])
def test_the_page_loads_without_errors_and_fits_the_screen(browser: Any, page: Path, width: int, scheme: str) -> None:
    browser.open(page, width=width, scheme=scheme)
    assert browser.errors() == []
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert browser.evaluate("document.querySelectorAll('#results tbody tr').length") > 5
    assert browser.evaluate("document.querySelectorAll('[data-metric=reward] path.smooth').length") == 2
    assert browser.evaluate("document.querySelectorAll('#pairs .example').length") == 4
    assert browser.evaluate("window.hacked ?? null") is None


def test_differing_words_are_marked_on_both_sides(browser: Any, page: Path) -> None:
    browser.open(page)
    sides = browser.evaluate(
        "Array.from(document.querySelectorAll('#pairs .example:first-child section')).map((side) => "
        "Array.from(side.querySelectorAll('mark')).map((mark) => mark.textContent).join('|'))"
    )
    assert len(sides) == 2
    assert "Friday" in sides[0]
    assert "Tuesday" in sides[1]
    assert "market" not in sides[0] + sides[1]


def test_pairs_are_sorted_and_searched(browser: Any, page: Path) -> None:
    names = "Array.from(document.querySelectorAll('#pairs summary strong')).map((node) => node.textContent)"
    browser.open(page)
    assert browser.evaluate(names) == [f"held-out-0{i}" for i in (1, 2, 3, 4)]
    browser.evaluate("document.querySelector('#filters button:nth-child(3)').click()")
    assert browser.evaluate(names)[0] == "held-out-04"  # the same answer twice
    browser.evaluate(
        "const search = document.querySelector('#filters input'); search.value = 'Larsen'; "
        "search.dispatchEvent(new Event('input'))"
    )
    assert browser.evaluate(names) == ["held-out-03", "held-out-01"]


def test_the_steps_of_all_runs_can_be_read(browser: Any, page: Path) -> None:
    browser.open(page)
    browser.evaluate(
        "document.querySelector('[data-metric=reward] svg').dispatchEvent("
        "new KeyboardEvent('keydown', {key: 'ArrowLeft', bubbles: true}))"
    )
    said = browser.evaluate("document.querySelector('[data-metric=reward] output').textContent")
    assert said.startswith("step 12: –")  # the first run has 8 steps


def test_the_axis_of_counts_has_whole_numbers_from_zero(
    browser: Any, make_run: Callable[..., Path], tmp_path: Path
) -> None:
    run = make_run(steps=4, samples=1)
    metrics = [json.loads(line) | {"critic/failed": 0} for line in (run / "metrics.jsonl").read_text().splitlines()]
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in metrics))
    browser.open(page_of(read_answer_sets([run, run]), tmp_path))
    labels = "Array.from(document.querySelectorAll('[data-metric=\"critic/failed\"] text[text-anchor=end]'))"
    assert browser.evaluate(f"{labels}.map((label) => label.textContent)") == ["0", "1"]


def test_of_many_prompts_some_are_shown(tmp_path: Path) -> None:
    answers = [Example(id=str(i), prompt=f"p{i}", completion="x") for i in range(MAX_SHOWN + 50)]
    page = page_of([AnswerSet.of(name, answers) for name in "ab"], tmp_path).read_text()
    assert f"Showing {MAX_SHOWN} of {MAX_SHOWN + 50} prompts" in page
    assert "None of these is a run" in page
