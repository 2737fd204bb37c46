"""A realistic run folder, and a headless Chromium that is driven over two pipes."""

import fcntl
import json
import math
import os
import random
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

CONFIG = """model: smollm2
data: {train: summaries/train.jsonl, held_out: summaries/held_out.jsonl}
critic: {kind: grounding}
policy:
  learning_rate: 1.0e-4
  per_device_train_batch_size: 8
  max_completion_length: 96
seed: 0
output_dir: runs/quickstart
"""

PROMPT = [
    {"role": "system", "content": "You summarise short texts in two sentences."},
    {
        "role": "user",
        "content": "The harbour council of Tarvik voted on Tuesday to rebuild the old fish market. Work starts on "
        "3 May and will cost 4.2 million euros, half of it paid by the region. Mayor Ingrid Solheim said that the "
        "forty traders will move to the ferry hall until the autumn of next year.",
    },
]
REFERENCE = (
    "Tarvik's council voted to rebuild the fish market from 3 May for 4.2 million euros; traders move meanwhile."
)

# Completions from poor to good: the text, its marks, its omissions. A mark is (quote, label, severity, sentence of the
# critique), an omission (text, sentence); square brackets enclose the phrase of the sentence that refers to it.
Mark = tuple[str, str, float, str]
DRAFTS: list[tuple[str, list[Mark], list[tuple[str, str]]]] = [
    (
        "The town of Tarvik voted on Friday to close the fish market 🐟. The traders will protest, and the traders "
        "will protest again.\nPresident Larsen said it costs 9 million dollars.",
        [
            ("Tarvik", "good", 1.0, "It names [the right town]."),
            ("Friday", "poor", 1.0, "The vote was [not on Friday] but on Tuesday."),
            ("close the fish market 🐟", "poor", 1.0, "The market is [not being closed]: it is rebuilt."),
            ("the traders will protest again", "poor", 0.5, "The second sentence [repeats itself]."),
            ("President Larsen", "poor", 1.0, "[President Larsen] appears nowhere in the text."),
            ("9 million dollars", "poor", 1.0, "The sum of [9 million dollars] is invented."),
        ],
        [("the start on 3 May", "It never says [when the work starts].")],
    ),
    (
        "The harbour council of Tarvik voted to rebuild the old fish market. Mayor Ingrid Solheim said that it will "
        "cost 4.2 million euros, all of it paid by the region.",
        [
            ("harbour council of Tarvik", "good", 1.0, "[Who decided] is right."),
            ("rebuild the old fish market", "good", 1.0, "So is [what was decided]."),
            ("all of it", "poor", 1.0, "The region pays half, [not all]."),
        ],
        [
            ("the start on 3 May", "The [date] is missing."),
            ("the move to the ferry hall", "So is the [move of the traders]."),
        ],
    ),
    (
        "Tarvik's harbour council voted on Tuesday to rebuild the fish market from 3 May for 4.2 million euros. The "
        "forty traders move to the ferry hall until autumn.",
        [
            ("voted on Tuesday", "good", 1.0, "The vote and [its day] are right."),
            ("from 3 May for 4.2 million euros", "good", 1.0, "[Date and cost] are as in the text."),
            ("forty traders move to the ferry hall", "good", 1.0, "It keeps [what happens to the traders]."),
            ("until autumn", "poor", 0.25, "[Autumn of next year] would be exact."),
        ],
        [],
    ),
]

# Samples are inflated when they are shown first.
SAMPLE_IS_DRAWN = """new Promise((drawn) => {
  const view = document.querySelector(".sample-view");
  const look = () => (!view || view.children.length ? drawn() : setTimeout(look, 5));
  look();
})"""

REPLACEMENTS = {"Friday": "<b>Tuesday</b>", "President Larsen": ""}  # text, not markup


def feedback_of(draft: int) -> dict[str, Any]:
    """The critique of a draft, with the offsets of its phrases."""
    text, marks, omissions = DRAFTS[draft]
    critique, spans, missing = "", [], []
    for quote, label, severity, sentence in marks:
        start = text.index(quote)
        span = {"start": start, "end": start + len(quote), "label": label, "severity": severity, "match": "exact"}
        critique, phrase = _append(critique, sentence)
        replacement = {"replacement": REPLACEMENTS[quote]} if quote in REPLACEMENTS else {}
        spans.append(span | {"phrase": phrase} | replacement)
    for what, sentence in omissions:
        critique, phrase = _append(critique, sentence)
        missing.append({"text": what, "phrase": phrase})
    score = sum(mark[2] if mark[1] == "good" else -mark[2] for mark in marks) - len(omissions)
    return {"critic": "grounding", "critique": critique, "spans": spans, "omissions": missing, "score": score}


def _append(critique: str, sentence: str) -> tuple[str, list[int]]:
    before, phrase, after = re.split(r"[\[\]]", sentence)
    start = len(critique) + bool(critique) + len(before)
    return f"{critique} {before}{phrase}{after}".strip(), [start, start + len(phrase)]


def tokens_of(text: str, feedback: dict[str, Any], rng: random.Random) -> list[dict[str, Any]]:
    """Words cut into pieces, emoji cut in two tokens that share it, and the end token."""
    ranges = []
    for match in re.finditer(r"\s?\w{1,6}|\s?[^\w\s]|\s", text):
        ranges.append(match.span())
        if "🐟" in match.group():
            ranges.append((match.end() - 1, match.end()))
    ranges.append((len(text), len(text)))
    rewards = [
        sum(
            (1 if span["label"] == "good" else -1) * span["severity"]
            for span in feedback["spans"]
            if span["start"] < end and span["end"] > start
        )
        for start, end in ranges
    ]
    rewards[-1] = -float(len(feedback["omissions"]))
    tokens, advantage = [], 0.0
    for (start, end), reward in zip(reversed(ranges), reversed(rewards), strict=True):
        advantage = reward + 0.6 * advantage
        before = math.log(rng.uniform(0.05, 0.95))
        after = min(-0.001, before + 0.05 * advantage + rng.gauss(0, 0.01))
        shown = text[start:end] or "<|im_end|>"
        tokens.append(
            {"text": shown, "start": start, "end": end, "reward": reward, "advantage": round(advantage, 4)}
            | {"logprob_before": round(before, 4), "logprob_after": round(after, 4)}
        )
    return tokens[::-1]


def sample_of(step: int, sample: int, draft: int, rng: random.Random) -> dict[str, Any]:
    text, feedback = DRAFTS[draft][0], feedback_of(draft)
    tokens = tokens_of(text, feedback, rng)
    return {"step": step, "sample": sample, "prompt": PROMPT, "completion": text, "reference": REFERENCE} | {
        "feedback": feedback,
        "total": sum(token["reward"] for token in tokens),
        "truncated": False,
        "tokens": tokens,
    }


def failed_sample(step: int, sample: int, rng: random.Random) -> dict[str, Any]:
    """A sample whose critic timed out: no rewards, no advantages."""
    record = sample_of(step, sample, draft=0, rng=rng)
    for token in record["tokens"]:
        token |= {"reward": None, "advantage": None, "logprob_after": None}
    error = "the endpoint did not answer within 30 s (3 attempts)"
    return record | {"feedback": {"critic": "judge", "status": "failed", "error": error}, "total": None}


def metrics_of(step: int, steps: int, rng: random.Random) -> dict[str, Any]:
    done = step / steps
    failed = int(rng.random() < 0.15) + int(rng.random() < 0.05)
    return {
        "step": step,
        "reward": -4 + 6 * (1 - math.exp(-3 * done)) + rng.gauss(0, 0.6),
        "kl": 2.4 * done + abs(rng.gauss(0, 0.15)),
        "completions/mean_length": 44 - 6 * done + rng.gauss(0, 2.5),
        "rewards/coverage": 0.34 - 0.06 * done + rng.gauss(0, 0.02),
        "critic/failed": failed,
        "samples": 8,
        "completions/clipped_ratio": max(0.0, 0.2 - 0.3 * done),
        "policy_loss": rng.gauss(-0.01, 0.01),
        "value_loss": 1.4 * math.exp(-4 * done) + 0.1 * rng.random(),
        "entropy": 2.1 - 0.5 * done + rng.gauss(0, 0.05),
        "clip_fraction": abs(rng.gauss(0.04, 0.02)),
        "grad_norm": abs(rng.gauss(1.2, 0.4)),
        "learning_rate": 1e-4 * (1 - done),
        "explained_variance": min(0.8, done) + rng.gauss(0, 0.05),
        "tokens_per_second": rng.gauss(190, 12),
        "time/step": rng.gauss(9, 1),
    }


def evaluation() -> dict[str, Any]:
    def completion(draft: int) -> dict[str, Any]:
        return {"completion": DRAFTS[draft][0], "feedback": feedback_of(draft)}

    examples = [
        {
            "id": f"held-out-{i:02}",
            "prompt": PROMPT,
            "reference": REFERENCE,
            "before": completion(a),
            "after": completion(b),
        }
        for i, (a, b) in enumerate([(0, 2), (1, 2), (0, 1), (1, 1)], 1)
    ]
    metrics = {
        "score": {"before": -3.85, "after": 1.62, "difference": 5.47, "low": 4.41, "high": 6.52},
        "rouge_l": {"before": 0.218, "after": 0.247, "difference": 0.029, "low": -0.004, "high": 0.061},
        "unsupported_words": {"before": 4.1, "after": 0.9, "difference": -3.2, "low": -4.0, "high": -2.5},
        "length": {"before": 44.1, "after": 38.6, "difference": -5.5, "low": -8.1, "high": -2.6},
    }
    return {"n": 40, "metrics": metrics, "examples": examples}


def write_lines(path: Path, records: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def write_run(folder: Path, steps: int = 40, samples: int = 4) -> Path:
    """A finished run that improves; one step has no reward, one sample no critique, one sample is truncated."""
    rng = random.Random(0)
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(CONFIG, encoding="utf-8")
    metrics = [metrics_of(step, steps, rng) for step in range(1, steps + 1)]
    metrics[len(metrics) // 2] |= {"reward": None, "rewards/coverage": None, "critic/failed": 8}
    write_lines(folder / "metrics.jsonl", metrics)
    records = [
        sample_of(step, sample, draft=min(2, int(3 * step / (steps + 1) + rng.random())), rng=rng)
        for step in range(1, steps + 1)
        for sample in range(samples)
    ]
    records[-1] = failed_sample(steps, samples - 1, rng)
    if samples > 2:
        records[-2]["truncated"] = True
        records[-2]["tokens"].pop()
        records[-2]["feedback"]["unmatched"] = ["the harbour master"]
    write_lines(folder / "samples.jsonl", records)
    (folder / "evaluation.json").write_text(json.dumps(evaluation()), encoding="utf-8")
    return folder


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Path]:
    """`make_run(steps=..., samples=...)` writes a run folder named quickstart."""
    return lambda **sizes: write_run(tmp_path / "quickstart", **sizes)


def high_pipe() -> tuple[int, int]:
    """A pipe with numbers from 10 on, so that moving one end to 3 or 4 cannot overwrite another."""
    low = os.pipe()
    reading, writing = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in low)
    for end in low:
        os.close(end)
    return reading, writing


class Chromium:
    """One headless browser with one page, driven by the DevTools protocol over pipes 3 and 4."""

    FLAGS = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
        "--disable-component-update --disable-sync --disable-dev-shm-usage --remote-debugging-pipe"
    )
    LAUNCH = (
        "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); "
        "os.execvp(sys.argv[3], sys.argv[3:])"
    )

    def __init__(self, executable: str, profile: Path) -> None:
        (ours_in, theirs_out), (theirs_in, ours_out) = high_pipe(), high_pipe()
        self._in, self._out, self._buffer, self._id = ours_in, ours_out, b"", 0
        self.events: list[dict[str, Any]] = []
        command = [executable, *self.FLAGS.split(), f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", self.LAUNCH, str(theirs_in), str(theirs_out), *command],
            pass_fds=(theirs_in, theirs_out),
            stderr=subprocess.DEVNULL,
        )
        for end in (theirs_in, theirs_out):
            os.close(end)
        self._session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._id += 1
        message = {"id": self._id, "method": method, "params": params}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while (reply := self._receive()).get("id") != self._id:
            self.events.append(reply)
        assert "error" not in reply, reply
        return reply["result"]

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            assert select.select([self._in], [], [], 20)[0], "Chromium did not answer within 20 s"
            arrived = os.read(self._in, 1 << 20)
            assert arrived, "Chromium closed its pipe"
            self._buffer += arrived
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def open(self, page: Path, **screen: Any) -> None:
        """Load a file and wait until it is drawn; `events` then begin with its own."""
        self.open_address(page.resolve().as_uri(), **screen)

    def open_address(self, address: str, width: int = 1200, height: int = 900, scheme: str = "light") -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.events.clear()
        loader = self.call("Page.navigate", url=address)["loaderId"]
        while not any(self._is_load(event, loader) for event in self.events):
            self.events.append(self._receive())
        # Curves are drawn once their size is known, which is after the first frame has been laid out.
        self.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
        self.evaluate(SAMPLE_IS_DRAWN)

    @staticmethod
    def _is_load(event: dict[str, Any], loader: str) -> bool:
        params = event.get("params", {})
        return event["method"] == "Page.lifecycleEvent" and (params["name"], params["loaderId"]) == ("load", loader)

    def wait(self, condition: str, seconds: float = 20) -> None:
        """Wait until a condition is true, through reloads."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            reply = self.call("Runtime.evaluate", expression=f"Boolean({condition})", returnByValue=True)
            if reply["result"].get("value") is True:
                return
            time.sleep(0.1)
        raise AssertionError(f"not true within {seconds} s: {condition}")

    def evaluate(self, script: str) -> Any:
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def hover(self, selector: str) -> None:
        """Move the mouse to the middle of the first line of an element."""
        where = f"document.querySelector({json.dumps(selector)})"
        self.evaluate(f"{where}.scrollIntoView({{block: 'center'}}); new Promise(requestAnimationFrame)")
        x, y = self.evaluate(
            f"(({{x, y, width, height}}) => [x + width / 2, y + height / 2])({where}.getClientRects()[0])"
        )
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def errors(self) -> list[str]:
        """Console messages, exceptions, CSP violations and requests other than for the page itself."""
        self.evaluate("new Promise(requestAnimationFrame)")
        found = []
        for event in self.events:
            match event:
                case {"method": "Log.entryAdded", "params": {"entry": entry}}:
                    found.append(entry["text"])
                case {"method": "Runtime.exceptionThrown" | "Runtime.consoleAPICalled", "params": params}:
                    found.append(json.dumps(params))
                case {"method": "Page.javascriptDialogOpening", "params": params}:
                    found.append(f"dialog: {params['message']}")
                case {"method": "Network.requestWillBeSent", "params": {"request": {"url": url}, "type": kind}}:
                    if kind != "Document" and not url.startswith("data:"):
                        found.append(f"request: {url}")
        return found

    def close(self) -> None:
        self._session = None
        self.call("Browser.close")
        self._process.wait(timeout=20)
        for end in (self._in, self._out):
            os.close(end)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    executable = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if executable is None:
        pytest.skip("no chromium, chromium-browser or google-chrome on the PATH: the page is not tried in a browser")
    chromium = Chromium(executable, tmp_path_factory.mktemp("chromium"))
    yield chromium
    chromium.close()
