import base64
import hashlib
import json
import re
import zlib
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from text2grad.errors import UserError
from text2grad.report import build_report

HOSTILE = (
    "</script><script>window.hacked = 1; alert(1)</script><img src=x onerror='window.hacked = 1'>\u2028\u2029&amp;"
)


class Page(HTMLParser):
    """Tags with their attributes, and the text inside script, style and everything else."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.raw: dict[str, list[str]] = {"script": [], "style": []}
        self.text = ""
        self._inside = ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.text += " "
        self._inside = tag
        if tag in self.raw:
            self.raw[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside in self.raw:
            self.raw[self._inside][-1] += data
        else:
            self.text += data

    @property
    def data(self) -> Any:
        return json.loads(self.raw["script"][0])

    @property
    def script(self) -> str:
        return self.raw["script"][-1]

    @property
    def samples(self) -> list[Any]:
        """The samples of all chunks, with their prompts."""
        chunks = [json.loads(zlib.decompress(base64.b64decode(text), -15)) for text in self.raw["script"][1:-1]]
        return [s | {"prompt": chunk["prompts"][s["prompt"]]} for chunk in chunks for s in chunk["samples"]]

    @property
    def words(self) -> str:
        return " ".join(self.text.split())


def replace_sample(run: Path, **fields: Any) -> None:
    record = json.loads((run / "samples.jsonl").read_text().splitlines()[0]) | fields
    (run / "samples.jsonl").write_text(json.dumps(record) + "\n")


def test_the_page_is_one_file_that_loads_nothing(make_run: Callable[..., Path]):
    run = make_run(steps=3, samples=2)
    assert build_report(run) == run / "report.html"
    page = Page(run / "report.html")
    addresses = [value for _, attributes in page.tags for name, value in attributes.items() if name in ("src", "href")]
    assert all(address and address.startswith(("#", "data:,")) for address in addresses)
    assert not re.search(
        r"url\(|@import|https?://(?!www\.w3\.org/2000/svg)", "".join([*page.raw["style"], page.script])
    )


def test_nothing_is_left_beside_the_page(make_run: Callable[..., Path]):
    run = make_run(steps=2, samples=1)
    before = {path.name for path in run.iterdir()}
    build_report(run)
    build_report(run)
    assert {path.name for path in run.iterdir()} == before | {"report.html"}


def test_a_report_that_cannot_be_written_leaves_the_old_one(
    make_run: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
):
    run = make_run(steps=2, samples=1)
    (run / "report.html").write_text("old")

    def full_disk(self: Path, content: str, encoding: str) -> int:
        self.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full_disk)
    with pytest.raises(UserError, match=r"disk is full while saving .*report\.html; free space"):
        build_report(run)
    assert (run / "report.html").read_text() == "old"
    assert not list(run.glob("report.html.*"))


def test_the_policy_allows_this_style_and_this_script_only(make_run: Callable[..., Path]):
    page = Page(build_report(make_run(steps=2, samples=1)))
    policy = next(tag["content"] for _, tag in page.tags if tag.get("http-equiv") == "Content-Security-Policy")

    def source(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    assert policy is not None
    assert dict(rule.split(" ", 1) for rule in policy.split("; ")) == {
        "default-src": "'none'",
        "style-src": source(page.raw["style"][0]),
        "script-src": source(page.script),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert not any(name == "style" or name.startswith("on") for _, tag in page.tags for name in tag)


def test_the_script_never_parses_markup(make_run: Callable[..., Path]):
    script = Page(build_report(make_run(steps=2, samples=1))).script
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|srcdoc", script)


def test_the_header_names_run_model_and_totals(make_run: Callable[..., Path]):
    run = make_run(steps=3, samples=2)
    records = [{"step": step, "critic/failed": 1, "samples": 8, "time/step": 50.4} for step in (1, 2, 3)]
    (run / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    words = Page(build_report(run)).words
    assert "quickstart model smollm2" in words
    assert "last step 3 completions sampled 24 failed critiques 3 (12.5%) training time 2 min 31 s" in words
    (run / "metrics.jsonl").write_text('{"step": 1500, "critic/failed": 0}\n')
    assert "last step 1,500 failed critiques 0 Curves, samples" in Page(build_report(run)).words


def test_the_table_shows_metrics_before_and_after(make_run: Callable[..., Path]):
    words = Page(build_report(make_run(steps=2, samples=1))).words
    assert "40 held-out prompts" in words
    assert "Critic’s score −3.85 1.62 +5.47 +4.41 to +6.52 rose" in words
    assert "ROUGE-L 0.218 0.247 +0.029 −0.004 to +0.061 no significant change" in words


def test_hostile_text_stays_text_wherever_it_comes_from(make_run: Callable[..., Path]):
    run = make_run(steps=2, samples=1)
    folder = run.rename(run.with_name("<img src=x onerror=alert(1)>"))
    feedback = {"critic": HOSTILE, "critique": HOSTILE, "unmatched": [HOSTILE], "status": "failed", "error": HOSTILE}
    replace_sample(folder, prompt=HOSTILE, completion=HOSTILE, reference=HOSTILE, feedback=feedback)
    (folder / "config.yaml").write_text(f"model: {json.dumps(HOSTILE)}\n", encoding="utf-8")
    side = {"completion": HOSTILE, "feedback": feedback}
    example = {"id": HOSTILE, "prompt": HOSTILE, "before": side, "after": side}
    (folder / "evaluation.json").write_text(json.dumps({"n": 1, "metrics": {HOSTILE: {}}, "examples": [example]}))
    page = Page(build_report(folder))
    assert [tag for tag, _ in page.tags].count("script") == 3  # data, one chunk, code
    assert [tag for tag, _ in page.tags].count("img") == 0
    sample, shown = page.samples[0], page.data["examples"][0]
    assert {sample["prompt"], sample["completion"], sample["reference"], sample["feedback"]["critique"]} == {HOSTILE}
    assert {shown["id"], shown["after"]["completion"], shown["after"]["feedback"]["error"]} == {HOSTILE}
    assert "<img src=x onerror=alert(1)>" in page.text
    # the model in the header, the reason of a failure, the name of the metric, the config
    assert page.text.count("window.hacked") == 2 * 4


def test_an_unfinished_run_says_what_is_not_there_yet(make_run: Callable[..., Path]):
    run = make_run(steps=2, samples=1)
    (run / "evaluation.json").unlink()
    (run / "samples.jsonl").unlink()
    (run / "metrics.jsonl").write_text('{"step": 1, "rew')
    (run / "config.yaml").unlink()
    page = Page(build_report(run))
    assert "This run has not been evaluated yet." in page.words
    assert "No step has been recorded yet." in page.words
    assert "No sample has been recorded yet." in page.words
    assert "No config.yaml in the run folder" in page.words
    assert page.samples == page.data["samples"]["step"] == page.data["examples"] == page.data["picked"] == []


def test_missing_and_null_metrics_are_gaps(make_run: Callable[..., Path]):
    run = make_run(steps=2, samples=1)
    lines = [
        '{"step": 1, "kl": 0.5, "host": "a"}',
        '{"step": 2, "kl": null, "reward": NaN}',
        '{"step": 1234567, "reward": 1}',
    ]
    (run / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    metrics = Page(build_report(run)).data["metrics"]
    assert metrics == {"step": [1, 2, 1234567], "kl": [0.5, None, None], "reward": [None, None, 1]}


def test_tokens_are_stored_in_columns_without_the_text_of_the_completion(make_run: Callable[..., Path]):
    run = make_run(steps=1, samples=1)
    tokens = [
        {"text": "a", "start": 0, "end": 1, "reward": 0.1234567, "advantage": None, "logprob_before": -1.5},
        {"text": "<|im_end|>", "start": 1, "end": 1, "reward": -1.0, "logprob_after": -0.5},
    ]
    replace_sample(run, completion="a", tokens=tokens, feedback=None)
    (sample,) = Page(build_report(run)).samples
    assert sample["tokens"] == {
        "text": [None, "<|im_end|>"],
        "start": [0, 1],
        "end": [1, 1],
        "reward": [0.1235, -1.0],
        "before": [-1.5, None],
        "after": [None, -0.5],
    }


def test_a_large_run_is_subsampled_and_says_so(make_run: Callable[..., Path], monkeypatch: pytest.MonkeyPatch):
    run = make_run(steps=30, samples=2)
    assert "Showing" not in Page(build_report(run)).words
    monkeypatch.setattr("text2grad.report.columns.MAX_STEPS", 10)
    monkeypatch.setattr("text2grad.report.build.MAX_EXAMPLES", 2)
    monkeypatch.setattr("text2grad.report.build.MAX_SAMPLES", 400)
    lines = (run / "samples.jsonl").read_text().splitlines()
    records = [json.loads(lines[0]) | {"step": step, "sample": i} for step in range(50) for i in range(10)]
    (run / "samples.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    page = Page(build_report(run))
    assert "Showing 400 of 500 recorded samples, spread evenly over the steps." in page.words
    assert "Showing 10 of 30 steps, evenly spaced." in page.words
    assert "Showing 3 of 4 examples" in page.words  # two at even distances, and the median change
    assert set(page.data["samples"]["step"]) == {sample["step"] for sample in page.samples} == set(range(50))
    assert page.data["metrics"]["step"][0] == 1
    assert page.data["metrics"]["step"][-1] == 30


def test_evaluated_steps_are_never_dropped(make_run: Callable[..., Path], monkeypatch: pytest.MonkeyPatch):
    run = make_run(steps=30, samples=2)
    monkeypatch.setattr("text2grad.report.columns.MAX_STEPS", 4)
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    for record in records:
        if record["step"] % 15 == 0:
            record["eval/score"] = record["step"] / 10
    (run / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    metrics = Page(build_report(run)).data["metrics"]
    scores = dict(zip(metrics["step"], metrics["eval/score"], strict=True))
    assert {step: score for step, score in scores.items() if score is not None} == {15: 1.5, 30: 3.0}
    assert len(scores) == 5
