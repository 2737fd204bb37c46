"""Annotation: every record exactly once, whatever happens in between."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest
from support import restore_sigint

from text2grad.annotate import annotate, store
from text2grad.annotate.runner import _FLUSH_SECONDS
from text2grad.errors import UserError
from text2grad.files import exclusive_lock
from text2grad.schema import Example, Feedback, Span, read_examples, write_examples


def ids(path):
    return Counter(example.id for example in read_examples(path))


EVERY_ONE_ONCE = Counter({str(i): 1 for i in range(100)})


def test_every_record_gets_feedback(source, tmp_path, shouter):
    out = tmp_path / "feedback.jsonl"
    summary = annotate(source, out, shouter(), batch_size=7)
    assert ids(out) == EVERY_ONE_ONCE
    records = {example.id: example for example in read_examples(out)}
    assert records["3"].feedback.critique == "calm"
    assert records["3"].prompt == "Question 3?"
    assert records["10"].feedback.status == "failed"
    assert (summary.records, summary.ok, summary.failed, summary.added) == (100, 90, 10, 100)
    assert summary.causes == {"bad luck": 10}
    assert summary.spans_per_completion == 1.0
    lengths = [len(f"good answer {i}") for i in range(100) if i % 10]
    assert summary.coverage == pytest.approx(sum(1 / n for n in lengths) / 90)


def test_nothing_is_annotated_twice(source, tmp_path, shouter):
    out = tmp_path / "feedback.jsonl"
    annotate(source, out, shouter())
    before = out.read_bytes()
    again = shouter()
    summary = annotate(source, out, again)
    assert again.seen == set()
    assert out.read_bytes() == before
    assert (summary.records, summary.failed, summary.added) == (100, 10, 0)


def test_a_partial_last_line_is_repaired(source, tmp_path, shouter):
    out = tmp_path / "feedback.jsonl"
    annotate(source, out, shouter())
    lines = out.read_bytes().splitlines(keepends=True)
    for partial in (lines[60][:1], lines[60][:-1], lines[60][: len(lines[60]) // 2]):
        out.write_bytes(b"".join(lines[:60]) + partial)
        again = shouter()
        annotate(source, out, again)
        assert ids(out) == EVERY_ONE_ONCE
        assert len(again.seen) == 40


def test_with_a_changed_critic_all_is_annotated_again_and_stale_records_are_moved(source, tmp_path, shouter):
    out, stale = tmp_path / "feedback.jsonl", tmp_path / "feedback.stale.jsonl"
    annotate(source, out, shouter("calm"))
    summary = annotate(source, out, shouter("angry"))
    assert ids(out) == ids(stale) == EVERY_ONE_ONCE
    assert {example.feedback.critique for example in read_examples(out)} == {"angry", ""}
    assert {example.feedback.critique for example in read_examples(stale)} == {"calm", ""}
    assert (summary.stale, summary.added) == (100, 100)


def test_a_changed_completion_is_annotated_again(source, tmp_path, shouter):
    out = tmp_path / "feedback.jsonl"
    annotate(source, out, shouter())
    source.write_text(source.read_text().replace("good answer 42", "better answer 42"))
    again = shouter()
    annotate(source, out, again)
    assert again.seen == {"42"}


def test_failed_records_are_annotated_again_only_with_retry_failed(source, tmp_path, shouter):
    out = tmp_path / "feedback.jsonl"
    annotate(source, out, shouter())
    again = shouter()
    summary = annotate(source, out, again, retry_failed=True)
    assert again.seen == {str(i) for i in range(0, 100, 10)}
    assert ids(out) == EVERY_ONE_ONCE
    assert (summary.records, summary.failed, summary.added) == (100, 10, 10)


def test_the_same_record_twice_is_one_record(source, tmp_path, shouter):
    source.write_text(source.read_text() * 2)
    out = tmp_path / "feedback.jsonl"
    annotate(source, out, shouter())
    assert ids(out) == EVERY_ONE_ONCE


def test_the_same_completion_under_two_ids_is_two_records(tmp_path, shouter):
    source, out = tmp_path / "data.jsonl", tmp_path / "feedback.jsonl"
    write_examples(source, [Example(id=i, prompt="p", completion="c") for i in ("1", "2")])
    annotate(source, out, shouter())
    assert ids(out) == {"1": 1, "2": 1}


def test_annotated_records_can_be_annotated(source, tmp_path, shouter):
    """The feedback and the key of a first critic do not count as content."""
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    annotate(source, first, shouter("calm"))
    annotate(first, second, shouter("angry"))
    again = shouter("angry")
    annotate(source, second, again)
    assert again.seen == set()


def test_a_malformed_line_aborts_after_the_lines_before_it(source, tmp_path, shouter):
    lines = source.read_text().splitlines(keepends=True)
    source.write_text("".join(lines[:50]) + "{}\n" + "".join(lines[50:]))
    out = tmp_path / "feedback.jsonl"
    with pytest.raises(UserError, match=r"data\.jsonl:51: id: Field required"):
        annotate(source, out, shouter(), batch_size=10)
    assert sum(ids(out).values()) == 50


def test_invalid_feedback_is_failed(source, tmp_path):
    class Beyond:
        def critique(self, examples):
            return [Feedback(critic="x", spans=[Span(start=0, end=999, label="poor")]) for _ in examples]

    out = tmp_path / "feedback.jsonl"
    summary = annotate(source, out, Beyond())
    assert summary.causes == {"invalid": 100}
    assert ids(out) == EVERY_ONE_ONCE


def test_too_few_feedbacks_are_failures(source, tmp_path):
    class Short:
        def critique(self, examples):
            return []

    summary = annotate(source, tmp_path / "feedback.jsonl", Short())
    assert (summary.failed, summary.ok) == (100, 0)
    assert summary.error == "the critic Short returned 0 feedbacks for 4 examples; it must return one each"


def test_when_the_critic_aborts_examples_in_flight_are_finished(source, tmp_path, shouter):
    class Broke(shouter):
        """Has a budget for 20 examples."""

        async def acritique(self, examples):
            if len(self.seen) == 20:
                raise UserError("no budget left")
            self.seen.add(examples[0].id)
            await asyncio.sleep(0.05)
            return [self.one(example) for example in examples]

    out = tmp_path / "feedback.jsonl"
    with pytest.raises(UserError, match="no budget left"):
        annotate(source, out, Broke(), concurrency=8)
    assert sum(ids(out).values()) == 20


def test_slow_examples_do_not_delay_the_writing_of_finished_ones(source, tmp_path):
    out = tmp_path / "feedback.jsonl"
    seen = []

    class OneSlow:
        async def acritique(self, examples):
            if examples[0].id == "99":
                await asyncio.sleep(1.5 * _FLUSH_SECONDS)
                seen.append(len(out.read_bytes().splitlines()))
            return [Feedback(critic="x") for _ in examples]

    annotate(source, out, OneSlow(), concurrency=4, batch_size=1000)
    assert seen == [99]


def test_concurrency_is_bounded_and_by_default_the_critics(tmp_path):
    source = tmp_path / "data.jsonl"
    write_examples(source, (Example(id=str(i), prompt="p", completion="c") for i in range(12)))

    class Busy:
        concurrency = 5
        now = most = 0

        async def acritique(self, examples):
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(0.15)
            self.now -= 1
            return [Feedback(critic="x") for _ in examples]

    for given, most in ((None, 5), (3, 3)):
        busy = Busy()
        annotate(source, tmp_path / f"{given}.jsonl", busy, concurrency=given)
        assert busy.most == most


def test_a_full_disk_leaves_complete_records(source, tmp_path, shouter, monkeypatch):
    out = tmp_path / "feedback.jsonl"

    def write_half(path, records):
        with path.open("a") as file:
            file.write('{"id": "partial')
        raise UserError("the disk is full")

    real = store.append_json_lines
    writes = itertools.chain([real, write_half], itertools.repeat(real))
    monkeypatch.setattr(store, "append_json_lines", lambda path, records: next(writes)(path, records))
    with pytest.raises(UserError, match="the disk is full"):
        annotate(source, out, shouter(), batch_size=5, concurrency=2)
    monkeypatch.setattr(store, "append_json_lines", real)
    assert 5 <= sum(ids(out).values()) < 30
    annotate(source, out, shouter())
    assert ids(out) == EVERY_ONE_ONCE


def test_two_runs_do_not_write_one_file(source, tmp_path, shouter):
    out = tmp_path / "feedback.jsonl"
    (tmp_path / "link.jsonl").symlink_to(out)
    with exclusive_lock(tmp_path / ".feedback.jsonl.lock", out):
        for name in (out, tmp_path / "link.jsonl"):
            with pytest.raises(UserError, match=f"feedback.jsonl is being written by process {os.getpid()} on "):
                annotate(source, name, shouter())
    (tmp_path / "link.jsonl").unlink()
    annotate(source, out, shouter())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.jsonl", "feedback.jsonl"]


def test_a_file_of_something_else_is_not_touched(source, tmp_path, shouter):
    out = tmp_path / "notes.jsonl"
    out.write_text('{"id": "1"}\n')
    with pytest.raises(UserError, match=r"notes\.jsonl:1: this is not an annotated record"):
        annotate(source, out, shouter())
    assert out.read_text() == '{"id": "1"}\n'


@pytest.mark.parametrize("text", ['{"a": "my config"}', "line one\nline two is not lost"])
def test_a_file_of_something_else_keeps_its_last_line(source, tmp_path, shouter, text):
    out = tmp_path / "config.json"
    out.write_text(text)
    with pytest.raises(UserError, match=r"config\.json.*this is not"):
        annotate(source, out, shouter())
    assert out.read_text() == text


def test_a_partial_first_record_is_moved(source, tmp_path, shouter):
    out = tmp_path / "feedback.jsonl"
    out.write_text('{"id": "7", "prom')
    annotate(source, out, shouter())
    assert ids(out) == EVERY_ONE_ONCE
    assert (tmp_path / "feedback.jsonl.partial").read_text() == '{"id": "7", "prom'


def test_a_partial_first_record_overwrites_nothing(source, tmp_path, shouter):
    out = tmp_path / "feedback.jsonl"
    for number in range(3):
        out.write_text('{"id": "7", "prom'[: 2 + number])
        annotate(source, out, shouter())
        out.unlink()
    kept = sorted(path.name for path in tmp_path.iterdir() if "partial" in path.name)
    assert kept == ["feedback.jsonl.partial", "feedback.jsonl.partial-2", "feedback.jsonl.partial-3"]


def test_one_batch_on_which_the_critic_raises_fails_alone(source, tmp_path, shouter):
    class Fragile(shouter):
        def one(self, example):
            if example.id == "42":
                raise ZeroDivisionError("in one example")
            return super().one(example)

    summary = annotate(source, tmp_path / "feedback.jsonl", Fragile(), batch_size=4)
    assert ids(tmp_path / "feedback.jsonl") == EVERY_ONE_ONCE
    raised = [cause for cause in summary.causes if "Fragile raised ZeroDivisionError" in cause]
    assert sum(summary.causes[cause] for cause in raised) == (1 if hasattr(shouter, "acritique") else 4)
    assert summary.ok > 80
    annotate(source, tmp_path / "feedback.jsonl", Fragile(), retry_failed=True, batch_size=1)
    assert ids(tmp_path / "feedback.jsonl") == EVERY_ONE_ONCE


def test_every_flipped_byte_of_a_record_is_named_or_annotated_again(tmp_path):
    source, out = tmp_path / "data.jsonl", tmp_path / "feedback.jsonl"
    write_examples(source, [Example(id=i, prompt="p", completion=f"good {i}", meta={"a": [1, None]}) for i in "12"])
    annotate(source, out, OnlyPraise())
    content = out.read_bytes()
    first = content.index(b"\n") + 1
    for position in range(first):
        flipped = bytearray(content)
        flipped[position] ^= 1 << position % 7
        out.write_bytes(flipped)
        message = None
        try:
            annotate(source, out, OnlyPraise())
        except UserError as error:
            message = str(error)
        if message is not None:
            assert message.startswith(f"{out}:1: this is not an annotated record, or it is damaged; remove the line")
            assert out.read_bytes() == flipped
            continue
        assert ids(out) == {"1": 1, "2": 1}, position
        assert {e.completion for e in read_examples(out)} == {"good 1", "good 2"}
        (tmp_path / "feedback.stale.jsonl").unlink(missing_ok=True)


def test_unusual_records_are_recognised_when_a_run_is_resumed(tmp_path, shouter):
    """Their keys are computed again from the output."""
    source, out = tmp_path / "data.jsonl", tmp_path / "feedback.jsonl"
    lines = [
        '{"id": "1", "prompt": "p", "completion": "é\\u2028", "note": 1e300, "big": 123456789012345678901234567890}',
        '{"id": "2", "prompt": [{"role": "user", "content": "hi"}], "meta": {"x": {"y": [1.10, -0.0, true]}}}',
        '{"id": "3", "prompt": "p", "completion": "", "reference": [], "tests": null, "meta": {"annotation": 3}}',
        '{"id": "4", "prompt": "p", "completion": "c", "feedback": {"critic": "x"}, "extra": null}',
        '{"id": "5", "prompt": "\\u0000", "completion": "c", "reference": ["a", "b"], "meta": null}',
    ]
    source.write_text("\n".join(lines) + "\n")
    annotate(source, out, OnlyPraise())
    again = OnlyPraise()
    summary = annotate(source, out, again)
    assert (summary.added, summary.stale, summary.records) == (0, 0, 5)


class OnlyPraise:
    def critique(self, examples):
        span = Span(start=0, end=1, label="good")
        return [Feedback(critic="x", critique="fine", spans=[span] if e.completion else []) for e in examples]


def test_any_error_in_writing_aborts_the_run(source, tmp_path, monkeypatch):
    class Fine:
        async def acritique(self, examples):
            return [Feedback(critic="x") for _ in examples]

    def broken(self, records):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(store.AnnotationStore, "append", broken)
    with pytest.raises(OSError, match="Input/output error"):
        annotate(source, tmp_path / "feedback.jsonl", Fine(), concurrency=4, batch_size=2)


def test_a_lone_surrogate_makes_failed_feedback(source, tmp_path):
    class Odd:
        def critique(self, examples):
            return [Feedback(critic="x", critique="bad \ud800") for _ in examples]

    summary = annotate(source, tmp_path / "feedback.jsonl", Odd())
    assert (summary.failed, summary.causes) == (100, {"invalid": 100})
    assert ids(tmp_path / "feedback.jsonl") == EVERY_ONE_ONCE


def test_the_source_is_not_written_to(source, shouter):
    with pytest.raises(UserError, match="is the source itself"):
        annotate(source, source, shouter())


def command(source, out, url):
    annotating = (
        "import sys; from pathlib import Path; from text2grad.annotate import annotate; "
        "from text2grad.critics.llm.critic import LLMCritic; "
        "critic = LLMCritic(model='m', base_url=sys.argv[3], timeout=0.5, max_retries=3); "
        "annotate(Path(sys.argv[1]), Path(sys.argv[2]), critic, concurrency=8, batch_size=4)"
    )
    return [sys.executable, "-c", annotating, str(source), str(out), url]


@pytest.mark.parametrize(("how", "times"), [(signal.SIGKILL, 2), (signal.SIGINT, 1)], ids=["kill", "ctrl-c"])
def test_a_killed_run_against_a_misbehaving_server_loses_and_repeats_nothing(source, tmp_path, misbehaving, how, times):
    out = tmp_path / "feedback.jsonl"
    url = misbehaving(trouble=0.4, latency=0.03, seed=1)
    draw = random.Random(2)
    for _ in range(times):
        goal = (len(out.read_bytes().splitlines()) if out.exists() else 0) + draw.randint(8, 30)
        running = subprocess.Popen(command(source, out, url), stderr=subprocess.PIPE, preexec_fn=restore_sigint)
        while (not out.exists() or len(out.read_bytes().splitlines()) < goal) and running.poll() is None:
            time.sleep(0.005)
        os.kill(running.pid, how)
        running.communicate()
        kept = out.read_bytes().splitlines()
        assert goal <= len(kept) < 100
    subprocess.run(command(source, out, url), check=True)
    assert ids(out) == EVERY_ONE_ONCE
    assert out.read_bytes().splitlines()[: len(kept) - 1] == kept[:-1]
    outcomes = Counter(json.loads(line)["feedback"].get("status", "ok") for line in out.read_text().splitlines())
    assert outcomes["ok"] > 50
