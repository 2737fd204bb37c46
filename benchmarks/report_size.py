"""The report of a long run: time to open, size, and memory of the browser, for 10,000 logged samples.

The run is made up of real material: 800 summaries of the quickstart texts, each cut and joined with another at a random
place, with critiques of the grounding critic, and random numbers for the tokens; four samples at each of 2,500 steps.
Chromium opens the page from disk; it is open when the last sample is drawn. Memory is that of the process that renders
the page, before and after every tenth step has been shown.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from harness import Bar, options, report, show
from playwright.sync_api import Browser, sync_playwright

from text2grad.critics.rules.grounding import GroundingCritic
from text2grad.data import summaries
from text2grad.report import build_report
from text2grad.schema import Example

STEPS, SAMPLES_PER_STEP, ANSWERS, OPENED = 2_500, 4, 800, 5
DRAWN = "document.querySelector('.sample-view')?.children.length > 0"
BARS = {"samples": Bar(at_least=10_000), "seconds_to_open": Bar(at_most=2.0)}


def main() -> None:
    args = options(__doc__ or "")
    steps = 25 if args.quick else STEPS
    with tempfile.TemporaryDirectory() as scratch:
        run = write_run(Path(scratch) / "run", steps)
        start = time.perf_counter()
        page = build_report(run)
        figures: dict[str, Any] = {
            "samples": steps * SAMPLES_PER_STEP,
            "seconds_to_build": time.perf_counter() - start,
            "megabytes_recorded": (run / "samples.jsonl").stat().st_size / 1e6,
            "megabytes_of_the_page": page.stat().st_size / 1e6,
        }
        figures |= measure(page)
    show("Report", ["metric", "value"], [[name, f"{value:.3g}"] for name, value in figures.items()])
    report("report_size", figures, {} if args.quick else BARS, args)


def write_run(folder: Path, steps: int) -> Path:
    """Write the folder of a run."""
    rng = random.Random(0)
    texts = list(summaries.load("train"))
    written = [_answer(rng, texts) for _ in range(min(ANSWERS, steps * SAMPLES_PER_STEP))]
    judged = list(zip(written, GroundingCritic().critique(written), strict=True))
    folder.mkdir()
    with (folder / "metrics.jsonl").open("w") as metrics, (folder / "samples.jsonl").open("w") as samples:
        for step in range(1, steps + 1):
            drawn = rng.sample(judged, SAMPLES_PER_STEP)
            records = [_sample(step, i, *pair, rng) for i, pair in enumerate(drawn)]
            samples.writelines(json.dumps(record) + "\n" for record in records)
            row = {"step": step, "samples": 32, "critic/failed": 0, "completions/mean_length": 40 + rng.gauss(0, 2)}
            names = ("reward", "kl", "entropy", "policy_loss", "grad_norm", "time/step", "rewards/coverage")
            metrics.write(json.dumps(row | {name: rng.gauss(0, 1) for name in names}) + "\n")
    return folder


def _answer(rng: random.Random, texts: list[Example]) -> Example:
    example, other = rng.sample(texts, 2)
    words, more = str(example.reference).split(), str(other.reference).split()
    text = " ".join([*words[: rng.randrange(8, 40)], *more[rng.randrange(len(more)) :]])
    return example.model_copy(update={"completion": text})


def _sample(step: int, number: int, example: Example, feedback: Any, rng: random.Random) -> dict[str, Any]:
    names = ("reward", "advantage", "logprob_before", "logprob_after", "kl", "value")
    pieces = [match.span() for match in re.finditer(r"\s?\w{1,6}|\s?[^\w\s]|\s", example.completion)]
    return {
        "step": step,
        "sample": number,
        **example.model_dump(mode="json", include={"id", "prompt", "completion", "reference"}),
        "feedback": feedback.model_dump(mode="json", exclude_defaults=True),
        "total": feedback.score,
        "tokens": [
            {"text": example.completion[start:end], "start": start, "end": end}
            | {name: float(f"{rng.gauss(0, 1):.6g}") for name in names}
            for start, end in pieces
        ],
    }


def measure(page: Path) -> dict[str, float]:
    """Open the page several times, then show every tenth step."""
    chromium = shutil.which("chromium") or sys.exit("no chromium on the PATH; install it to run this benchmark")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        seconds = []
        for _ in range(OPENED):
            tab = browser.new_page(viewport={"width": 1200, "height": 900})
            start = time.perf_counter()
            tab.goto(page.as_uri())
            tab.wait_for_function(DRAWN)
            seconds.append(time.perf_counter() - start)
            opened = renderer_megabytes(browser)
            if len(seconds) < OPENED:
                tab.close()
        last = int(str(tab.evaluate("document.querySelector('.step-picker input').max")))
        for step in range(0, last, 10):
            tab.evaluate(
                "(step) => { const slider = document.querySelector('.step-picker input'); slider.value = step; "
                "slider.dispatchEvent(new Event('input')); return new Promise((done) => setTimeout(done, 5)); }",
                step,
            )
        shown = renderer_megabytes(browser)
        browser.close()
    return {
        "seconds_to_open": median(seconds),
        "seconds_to_open_first": seconds[0],
        "megabytes_of_memory": opened,
        "megabytes_of_memory_after_use": shown,
    }


def renderer_megabytes(browser: Browser) -> float:
    """Return the resident memory of the largest process that renders a page."""
    session = browser.new_browser_cdp_session()
    processes = session.send("SystemInfo.getProcessInfo")["processInfo"]
    session.detach()
    sizes = [_resident(process["id"]) for process in processes if process["type"] == "renderer"]
    return max(sizes)


def _resident(process: int) -> float:
    status = Path(f"/proc/{process}/status").read_text()
    match = re.search(r"VmRSS:\s+(\d+) kB", status)
    return int(match.group(1)) / 1000 if match else 0.0


if __name__ == "__main__":
    main()
