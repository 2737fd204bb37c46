"""The studio under load: scripted annotators over HTTP, each like a person who hurries.

Every annotator opens answers, has comments read, saves marks several times, sometimes undoes, sometimes saves a version
that is not the current one, and lists the answers. All work on one file, half of the time on the same ten answers.
Each save has the name of its annotator and a counter in all its parts. At the end the server is killed, and every
record in the store has to be the last one that its annotator was told is saved: none lost, none mixed with others.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from harness import Bar, options, report, show

from text2grad.schema import Example, write_examples
from text2grad.studio.access import HEADER

ANNOTATORS = 50
ANSWERS = 200
PAUSE = (0.2, 1.2)  # seconds between two requests of one annotator: much faster than a person
SEED = 0


@dataclass
class Load:
    """What the annotators measured. confirmed: the last saved state by annotator and answer."""

    latencies: dict[str, list[float]] = field(default_factory=dict)
    errors: Counter[str] = field(default_factory=Counter)
    confirmed: dict[tuple[str, int], tuple[int, str]] = field(default_factory=dict)
    conflicts: int = 0
    undone: int = 0
    mixed: int = 0

    def all_latencies(self) -> list[float]:
        return [seconds for kind in self.latencies.values() for seconds in kind]

    def milliseconds(self, percentile: float, kind: str | None = None) -> float:
        return float(np.percentile(self.latencies[kind] if kind else self.all_latencies(), percentile)) * 1000


def main() -> None:
    args = options(__doc__ or "")
    annotators, seconds = (10, 5.0) if args.quick else (ANNOTATORS, 60.0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answers.jsonl"
        answers = examples()
        write_examples(path, answers)
        with run_server(path) as (port, process):
            load = asyncio.run(annotate(port, answers, annotators, seconds))
            process.send_signal(signal.SIGKILL)
        lost, mixed = check(path, answers, load)
    rows = [
        [kind, str(len(load.latencies[kind])), *(f"{load.milliseconds(p, kind):.0f}" for p in (50, 95, 99))]
        for kind in sorted(load.latencies)
    ]
    show("Requests", ["", "count", "p50 ms", "p95 ms", "p99 ms"], rows)
    for what, count in load.errors.most_common(5):
        print(f"{count} x {what}")
    measured = {
        "annotators": annotators,
        "seconds": seconds,
        "requests": len(load.all_latencies()),
        "requests_per_second": len(load.all_latencies()) / seconds,
        "saves": len(load.latencies["save"]),
        "records": len(load.confirmed),
        "conflicts_refused": load.conflicts,
        "undone": load.undone,
        "p50_ms": load.milliseconds(50),
        "p95_ms": load.milliseconds(95),
        "p99_ms": load.milliseconds(99),
        "save_p95_ms": load.milliseconds(95, "save"),
        "errors": load.errors.total(),
        "lost_records": lost,
        "mixed_records": mixed + load.mixed,
    }
    report("studio_load", measured, bars(args.quick), args)


def bars(quick: bool) -> dict[str, Bar]:
    return {
        "p95_ms": Bar(at_most=200),
        "errors": Bar(at_most=0),
        "lost_records": Bar(at_most=0),
        "mixed_records": Bar(at_most=0),
        "records": Bar(at_least=10 if quick else 500),
    }


def examples() -> list[Example]:
    """Return answers of 20 to 120 words of news items."""
    lines = (files("text2grad") / "data" / "quickstart_texts" / "train.jsonl").read_text(encoding="utf-8").splitlines()
    words = " ".join(json.loads(line)["document"] for line in lines[:100]).split()
    draw = random.Random(SEED)
    found = []
    for number in range(ANSWERS):
        length = draw.randint(20, 120)
        start = draw.randrange(len(words) - length)
        text = " ".join(words[start : start + length])
        found.append(Example(id=str(number), prompt=f"Summarise text {number}.", completion=text))
    return found


@contextmanager
def run_server(path: Path) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    command = [sys.executable, "-m", "text2grad", "studio", str(path), "--port", "0"]
    source = str(Path(__file__).resolve().parent.parent / "src")
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": source}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        line = process.stdout.readline()  # "The studio is at http://127.0.0.1:PORT/"
        if not line:
            sys.exit("the studio did not start")
        try:
            yield int(line.strip().strip("/").rpartition(":")[2]), process
        finally:
            process.kill()


async def annotate(port: int, answers: list[Example], annotators: int, seconds: float) -> Load:
    load = Load()
    session = await Client(port, load).get("/api/session", "session")
    load.latencies.clear()
    path = f"/api/files/{session['files'][0]['id']}"
    deadline = time.perf_counter() + seconds
    await asyncio.gather(
        *(Annotator(f"annotator {i}", port, path, answers, load).work(deadline) for i in range(annotators))
    )
    return load


class Client:
    """One connection that is kept open."""

    def __init__(self, port: int, load: Load) -> None:
        self._port, self._load = port, load
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def get(self, path: str, kind: str) -> Any:
        return (await self.request("GET", path, kind))[1]

    async def request(self, method: str, path: str, kind: str, body: Any = None) -> tuple[int, Any]:
        content = b"" if body is None else json.dumps(body).encode()
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{HEADER}: 1\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(content)}\r\n\r\n"
        )
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        began = time.perf_counter()
        writer.write(head.encode() + content)
        await writer.drain()
        answer = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(answer.partition("content-length: ")[2].partition("\r\n")[0])
        content = await reader.readexactly(length)
        self._load.latencies.setdefault(kind, []).append(time.perf_counter() - began)
        return int(answer.split()[1]), json.loads(content)

    def close(self) -> None:
        if self._streams:
            self._streams[1].close()


class Annotator:
    """A scripted annotator; the texts of every save have its name and a counter."""

    def __init__(self, name: str, port: int, path: str, answers: list[Example], load: Load) -> None:
        self.name, self.path, self.answers, self.load = name, path, answers, load
        self.client, self.draw = Client(port, load), random.Random(name)
        self.count = 0

    async def work(self, deadline: float) -> None:
        await self._pause()
        while time.perf_counter() < deadline:
            shared = self.draw.random() < 0.5  # half of the work is on few answers that all have
            await self._annotate(self.draw.randrange(10 if shared else len(self.answers)), deadline)
        self.client.close()

    async def _annotate(self, index: int, deadline: float) -> None:
        who = f"annotator={quote(self.name)}"
        await self.client.get(f"{self.path}/records?{who}&limit=100", "list")
        record = await self.client.get(f"{self.path}/records/{index}?{who}", "open")
        said = record["annotation"]
        self._check(said, index)
        version = said["version"]
        await self._pause()
        comment = {"annotator": self.name, "critique": self._comment(index)}
        await self.client.request("POST", f"{self.path}/records/{index}/suggestions", "suggest", comment)
        for _ in range(self.draw.randint(1, 4)):
            if time.perf_counter() > deadline:
                return
            await self._pause()
            version = await self._save(index, version)
        if self.draw.random() < 0.2:
            await self._save(index, max(0, version - 1), is_stale=True)
        if self.draw.random() < 0.2:
            body = {"annotator": self.name, "version": version}
            status, undone = await self.client.request("POST", f"{self.path}/records/{index}/undo", "undo", body)
            self._confirm(index, status, undone)
            self.load.undone += 1

    def _comment(self, index: int) -> str:
        """Another comment each time, so that no cache helps: praise, and a quotation of the answer."""
        words = self.answers[index].completion.split()
        start = self.draw.randrange(len(words) - 3)
        return f'Good start number {self.count}, but "{" ".join(words[start : start + 3])}" is wrong.'

    async def _save(self, index: int, version: int, is_stale: bool = False) -> int:
        self.count += 1
        text = self.answers[index].completion
        start = self.draw.randrange(len(text) - 5)
        end = self.draw.randint(start + 1, min(len(text), start + 60))
        stamp = f"{self.name} #{self.count}"
        span = {"start": start, "end": end, "quote": text[start:end], "label": "poor", "reason": stamp}
        body = {
            "annotator": self.name,
            "version": version,
            "status": "done",
            "critique": stamp,
            "spans": [span],
            "omissions": [{"text": stamp}],
        }
        status, saved = await self.client.request("PUT", f"{self.path}/records/{index}/annotation", "save", body)
        if is_stale:
            self.load.conflicts += status == 409
            if status != 409:
                self.load.errors[f"a stale version was answered with {status}"] += 1
            return version
        return self._confirm(index, status, saved)

    def _confirm(self, index: int, status: int, saved: Any) -> int:
        if status != 200:
            self.load.errors[f"{status} {str(saved)[:100]}"] += 1
            return 0
        self._check(saved, index)
        self.load.confirmed[self.name, index] = (saved["version"], saved["feedback"]["critique"])
        return int(saved["version"])

    def _check(self, said: Any, index: int) -> None:
        """What the server says has to be this annotator's, and the last that was confirmed."""
        known = self.load.confirmed.get((self.name, index), (0, ""))
        self.load.mixed += said["annotator"] != self.name or not is_whole(said["feedback"], self.name)
        self.load.mixed += said["version"] < known[0]

    async def _pause(self) -> None:
        await asyncio.sleep(self.draw.uniform(*PAUSE))


def is_whole(feedback: Any, name: str) -> bool:
    """Whether all parts of a record are of one save of one annotator."""
    stamp = feedback["critique"]
    parts = [span["reason"] for span in feedback["spans"]] + [item["text"] for item in feedback["omissions"]]
    return all(part == stamp for part in parts) and (not stamp or stamp.startswith(f"{name} #"))


def check(path: Path, answers: list[Example], load: Load) -> tuple[int, int]:
    """Return how many confirmed records the store of the killed server has lost, and how many it has mixed."""
    from text2grad.studio.project import Project

    project = Project(path)
    assert [example.id for example in project.examples] == [example.id for example in answers]
    lost = mixed = 0
    for (name, index), (version, critique) in load.confirmed.items():
        found = project.store.get(project.keys[index], name)
        lost += (found.version, found.feedback.critique) != (version, critique)
    for key, found_there in project.store.annotations().items():
        text = answers[project.keys.index(key)].completion
        for one in found_there:
            said = one.feedback.model_dump()
            is_inside = all(0 <= span.start < span.end <= len(text) for span in one.feedback.spans)
            mixed += not (is_whole(said, one.annotator) and is_inside)
    project.close()
    return lost, mixed


if __name__ == "__main__":
    main()
