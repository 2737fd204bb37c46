"""Source files and critics for tests of annotation."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from text2grad.schema import Example, Feedback, Span, write_examples

SERVER = Path(__file__).parent.parent.parent / "benchmarks" / "misbehaving_server.py"


class Shouter:
    """Blames the first letter; fails on completions that start with "bad". Records the ids of its examples."""

    def __init__(self, mood: str = "calm") -> None:
        self.mood = mood
        self._seen: set[str] = set()

    def critique(self, examples):
        return [self.one(example) for example in examples]

    def one(self, example):
        self._seen.add(example.id)
        if example.completion.startswith("bad"):
            return Feedback.failure("shouter", "bad luck: it happens")
        return Feedback(critic="shouter", critique=self.mood, spans=[Span(start=0, end=1, label="poor")])

    @property
    def seen(self) -> set[str]:
        return self._seen


class AsyncShouter(Shouter):
    async def acritique(self, examples):
        return self.critique(examples)


@pytest.fixture(params=[Shouter, AsyncShouter], ids=["sync", "async"])
def shouter(request: pytest.FixtureRequest) -> Any:
    """A critic without and with `acritique`."""
    return request.param


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """100 records; each tenth will fail."""
    path = tmp_path / "data.jsonl"
    write_examples(path, (example(i) for i in range(100)))
    return path


def example(i: int) -> Example:
    return Example(id=str(i), prompt=f"Question {i}?", completion=f"{'bad' if i % 10 == 0 else 'good'} answer {i}")


@pytest.fixture
def misbehaving() -> Iterator[Any]:
    """Starts servers that misbehave on purpose; returns their address."""
    started = []

    def start(**options: float) -> str:
        flags = [str(part) for name, value in options.items() for part in (f"--{name}", value)]
        process = subprocess.Popen([sys.executable, SERVER, *flags], stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None
        return process.stdout.readline().strip()

    yield start
    for process in started:
        process.kill()
        process.communicate()
