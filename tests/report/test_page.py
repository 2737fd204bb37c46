"""The page in a real browser: what a reader sees, hovers and presses."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from text2grad.report import build_report

HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"
TEXTS_IN = "Array.from(document.querySelectorAll('.sample-view {} .highlighted')).map((node) => node.textContent)"
HIGHLIGHTED = TEXTS_IN.format(".completion") + ".join('')"
HIGHLIGHTED_PHRASES = TEXTS_IN.format(".critique")


@pytest.fixture
def report(make_run: Callable[..., Path]) -> Path:
    return build_report(make_run(steps=4, samples=4))


@pytest.fixture
def first_step(browser: Any, report: Path) -> Any:
    """The browser at the first step's first sample, whose critique has six phrases and an omission."""
    browser.open(report)
    browser.evaluate("for (let i = 0; i < 3; i++) document.querySelector('[aria-label=\"Previous step\"]').click()")
    return browser


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (360, "dark")])
def test_the_page_loads_without_errors_and_fits_the_screen(browser: Any, report: Path, width: int, scheme: str):
    browser.open(report, width=width, scheme=scheme)
    assert browser.evaluate("document.querySelectorAll('#main-curves .chart').length") == 5
    assert browser.evaluate("document.querySelectorAll('#examples .example').length") == 4
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert browser.errors() == []


def test_an_unfinished_run_loads_without_errors(browser: Any, tmp_path: Path):
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "reward": null, "kl": 0.1}\n')
    browser.open(build_report(tmp_path))
    assert browser.evaluate("document.querySelector('[data-metric=reward]').textContent").endswith(
        "No values recorded."
    )
    assert browser.errors() == []


def test_evaluations_are_drawn_as_one_line_over_the_steps_between(browser: Any, make_run: Callable[..., Path]):
    run = make_run(steps=9, samples=1)
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    for record in records:
        if record["step"] % 3 == 0:
            record["eval/score"] = 0.1 * record["step"]
    (run / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    browser.open(build_report(run))
    drawn = "document.querySelector('#main-curves [data-metric=\"eval/score\"] path.smooth').getAttribute('d')"
    path = browser.evaluate(drawn)
    assert (path.count("M"), path.count("L")) == (1, 2)
    assert browser.errors() == []


def test_hovering_a_phrase_highlights_its_span(first_step: Any):
    phrases = first_step.evaluate(
        "Array.from(document.querySelectorAll('.sample-view .critique .phrase')).slice(0, 7).map((n) => n.textContent)"
    )
    assert phrases[1] == "not on Friday"
    first_step.hover(".sample-view .phrase:nth-of-type(2)")
    assert first_step.evaluate(HIGHLIGHTED) == "Friday"
    first_step.hover("h1")
    assert first_step.evaluate(HIGHLIGHTED) == ""


def test_offsets_count_code_points_after_an_emoji(first_step: Any):
    first_step.hover(".sample-view .phrase:nth-of-type(5)")
    assert first_step.evaluate(HIGHLIGHTED) == "President Larsen"


def test_hovering_a_marked_word_highlights_its_phrase(first_step: Any):
    first_step.hover(".sample-view .completion .mark[data-targets=span-1]")
    assert first_step.evaluate(HIGHLIGHTED_PHRASES) == ["not on Friday"]


def test_an_omission_highlights_the_end_token(first_step: Any):
    first_step.hover(".sample-view .critique li .phrase.omission")
    assert first_step.evaluate("document.querySelector('.sample-view .end').classList.contains('highlighted')")
    assert first_step.evaluate(HIGHLIGHTED_PHRASES) == ["when the work starts", "the start on 3 May"]


def test_a_pressed_phrase_stays_highlighted_until_escape(first_step: Any):
    first_step.evaluate("document.querySelector('.sample-view .phrase').focus()")
    first_step.press("Enter")
    first_step.evaluate("document.activeElement.blur()")
    assert first_step.evaluate(HIGHLIGHTED) == "Tarvik"
    assert first_step.evaluate("document.querySelector('.sample-view .phrase').ariaPressed") == "true"
    first_step.evaluate("document.querySelector('.sample-view .phrase').focus()")
    first_step.press("Escape")
    assert first_step.evaluate(HIGHLIGHTED) == ""


def test_the_completion_reads_as_it_was_sampled(first_step: Any, report: Path):
    sample = json.loads((report.parent / "samples.jsonl").read_text().splitlines()[0])
    assert first_step.evaluate("document.querySelector('.sample-view .completion').textContent") == sample["completion"]


def test_a_span_shows_what_should_stand_there(first_step: Any):
    shown = []
    for target in ("span-1", "span-4", "span-5"):
        first_step.hover(f".sample-view .completion .mark[data-targets={target}]")
        shown.append(first_step.evaluate("document.getElementById('tooltip').textContent").partition("poor")[2])
    assert shown == [" → “<b>Tuesday</b>”", " → delete", ""]


def test_a_token_shows_its_numbers_and_those_it_shares_a_character_with(first_step: Any):
    first_step.hover(".sample-view .completion .mark[data-targets=span-1]")
    shown = first_step.evaluate("document.getElementById('tooltip').textContent")
    assert shown.startswith("␣Fridayreward−1advantage")
    assert "%" in shown
    first_step.evaluate(
        "Array.from(document.querySelectorAll('.sample-view .token'))"
        ".find((n) => n.textContent.includes('🐟')).id = 'fish'"
    )
    first_step.hover("#fish")
    assert "These tokens share a character" in first_step.evaluate("document.getElementById('tooltip').textContent")


def test_the_switch_recolours_the_tokens(first_step: Any):
    coloured = "document.querySelectorAll('.sample-view .token:is(.poor, .good)').length"
    by_reward = first_step.evaluate(coloured)
    first_step.evaluate("document.querySelector('[value=change]').click()")
    assert first_step.evaluate(coloured) > by_reward
    assert "more likely" in first_step.evaluate("document.querySelector('.legend').textContent")


def test_a_failed_critique_is_shown_as_one(browser: Any, report: Path):
    browser.open(report)
    browser.evaluate("Array.from(document.querySelectorAll('.chip')).at(-1).click()")
    assert "This critique failed." in browser.evaluate("document.querySelector('.sample-view').textContent")
    assert browser.evaluate("document.querySelectorAll('.sample-view .token:is(.poor, .good)').length") == 0


def test_arrow_keys_change_the_step(browser: Any, report: Path):
    browser.open(report)
    step = "document.querySelector('.step-name').textContent"
    assert browser.evaluate(step) == "Step 4"
    browser.press("ArrowLeft")
    assert browser.evaluate(step) == "Step 3"
    browser.press("ArrowRight")
    assert browser.evaluate(step) == "Step 4"


def test_a_step_without_a_reward_is_a_gap_in_the_curve(browser: Any, report: Path):
    browser.open(report)
    path = browser.evaluate("document.querySelector('[data-metric=reward] .smooth').getAttribute('d')")
    assert path.count("M") == 2
    assert browser.evaluate("document.querySelectorAll('[data-metric=reward] .raw').length") == 3
    failed = '[data-metric="critic/failed"]'
    browser.hover(f"{failed} svg")
    assert "of 8" in browser.evaluate(f"document.querySelector('{failed} .readout').textContent")


def test_metrics_with_a_prefix_have_a_readable_title(browser: Any, report: Path):
    browser.open(report)
    title = browser.evaluate("document.querySelector('#other-curves [data-metric=\"time/step\"] h3').textContent")
    assert title == "Time / step"


def test_the_theme_can_be_switched(browser: Any, report: Path):
    browser.open(report, scheme="light")
    colour = "getComputedStyle(document.body).backgroundColor"
    light = browser.evaluate(colour)
    browser.evaluate("document.getElementById('theme').click()")
    assert browser.evaluate(colour) != light
    browser.evaluate("document.getElementById('theme').click()")
    assert browser.evaluate(colour) == light


def test_a_hostile_completion_is_shown_and_not_executed(browser: Any, report: Path):
    feedback = {"critic": HOSTILE, "critique": HOSTILE, "unmatched": [HOSTILE]}
    feedback["spans"] = [
        {"start": 0, "end": len(HOSTILE), "label": "poor", "phrase": [0, len(HOSTILE)], "reason": HOSTILE}
    ]
    tokens = [{"text": HOSTILE, "start": 0, "end": len(HOSTILE), "reward": -1.0}]
    sample = {"step": 1, "sample": 0, "prompt": HOSTILE, "completion": HOSTILE, "feedback": feedback, "tokens": tokens}
    (report.parent / "samples.jsonl").write_text(json.dumps(sample) + "\n")
    browser.open(build_report(report.parent))
    browser.hover(".sample-view .phrase")
    assert browser.evaluate(HIGHLIGHTED) == HOSTILE
    assert browser.evaluate("document.querySelectorAll('img').length") == 0
    assert browser.evaluate("typeof window.hacked") == "undefined"
    assert browser.errors() == []


def test_the_policy_refuses_what_would_get_past_the_escaping(browser: Any, report: Path):
    browser.open(report)
    browser.evaluate("document.body.insertAdjacentHTML('beforeend', `<img src=x onerror='window.hacked = 1'>`)")
    browser.evaluate(
        "const s = document.createElement('script'); s.textContent = 'window.hacked = 1'; document.body.append(s)"
    )
    browser.evaluate("new Promise((done) => setTimeout(done, 100))")
    assert browser.evaluate("typeof window.hacked") == "undefined"
    assert any("Content Security Policy" in error for error in browser.errors())


def test_tokens_are_coloured_by_value_kl_and_correction_where_they_are_logged(browser: Any, report: Path):
    modes = "Array.from(document.querySelectorAll('[name=mode]')).map((node) => node.value)"
    browser.open(report)
    assert browser.evaluate(modes) == ["reward", "advantage", "change"]
    sample = json.loads((report.parent / "samples.jsonl").read_text().splitlines()[0])
    for i, token in enumerate(sample["tokens"]):
        token |= {"value": 0.1 * i, "kl": -0.2}
    at = next(i for i, token in enumerate(sample["tokens"]) if token["text"] == " Friday")
    sample["corrections"] = [{"start": at, "end": at + 1, "text": " Tuesday", "before": 0.02, "after": 0.2}]
    (report.parent / "samples.jsonl").write_text(json.dumps(sample) + "\n")
    browser.open(build_report(report.parent))
    assert browser.evaluate(modes) == ["reward", "advantage", "change", "value", "kl", "correction"]
    coloured = "Array.from(document.querySelectorAll('.sample-view .token.{}')).map((node) => node.textContent)"
    browser.evaluate("document.querySelector('[value=correction]').click()")
    assert browser.evaluate(coloured.format("good")) == [" Friday"]
    browser.evaluate("document.querySelector('[value=kl]').click()")
    assert len(browser.evaluate(coloured.format("poor"))) > 20
    browser.hover(".sample-view .completion .mark[data-targets=span-1]")
    shown = browser.evaluate("document.getElementById('tooltip').textContent")
    assert "KL−0.2" in shown
    assert "should be␣Tuesday" in shown
    listed = browser.evaluate("document.querySelector('.sample-view .corrections li').textContent")
    assert listed == " Friday should be  Tuesday: probability 2% → 20%"
    assert browser.errors() == []


def test_the_story_and_the_signs_of_trouble_are_told(browser: Any, report: Path):
    browser.open(report)
    assert "In 4 steps the model learned from 32 completions" in browser.evaluate(
        "document.getElementById('story').textContent"
    )
    assert browser.evaluate("document.querySelectorAll('#picked .picked-example').length") == 2
    assert browser.evaluate("document.querySelectorAll('#trouble .checks > li').length") == 5
    browser.evaluate("document.querySelector('[aria-label=\"Previous step\"]').click()")
    browser.evaluate("document.querySelector('#trouble [data-sample]').click()")
    assert browser.evaluate("document.querySelector('.step-name').textContent") == "Step 4"
    assert "This critique failed." in browser.evaluate("document.querySelector('.sample-view').textContent")


def test_further_comparisons_are_made_when_they_are_opened(browser: Any, report: Path):
    browser.open(report)
    bodies = "document.querySelectorAll('#examples .example-body').length"
    assert browser.evaluate(bodies) == 1
    browser.evaluate("document.querySelectorAll('#examples > .example > summary')[1].click()")
    browser.evaluate("new Promise((done) => setTimeout(done, 50))")
    assert browser.evaluate(bodies) == 2
