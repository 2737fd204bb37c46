"""A studio on a real socket, with answers that are hard to count in, and a teacher that does not learn."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import BaseModel

import text2grad
from text2grad.schema import Example, Feedback, write_examples
from text2grad.studio.access import HEADER
from text2grad.studio.app import create_app
from text2grad.studio.lessons import Lessons, TeacherLike
from text2grad.studio.studio import Studio
from text2grad.studio.training_runs import TrainingRuns
from text2grad.studio.workspace import Workspace
from text2grad.web.server import WebSettings, bind, create_server

CHANGE = {HEADER: "1"}  # what the page sends with every change
SOURCE = "The bridge over the Moll was closed on Monday after 340 bolts were found to be loose. Repairs take six weeks."
COMPLETIONS = {
    "plain": "The Moll bridge was closed on Friday because 430 bolts were loose. It is a historic bridge.",
    "emoji": "Hello \U0001f469\u200d\U0001f469\u200d\U0001f467 team! \U0001f389\U0001f389 Don't be late \U0001f600.",
    "combining": "Cafe\u0301 Zo\u0308e\u0308 opens at nine; n\u0303ot on Sunday\u0323\u0307s.",
    "code": "def absolute(x):\n\tif x < 0:\n\t\treturn x\n\n\treturn x\n",
    "hebrew": "\u05d4\u05e1\u05e4\u05e8\u05d9\u05d9\u05d4 \u05e0\u05e4\u05ea\u05d7\u05ea "
    "\u05d1\u05e9\u05e2\u05d4 \u05ea\u05e9\u05e2 (9:00) \u05d1\u05db\u05dc \u05d9\u05d5\u05dd.",
    "breaks": "First line.\r\nSecond\tline.\n\n  Third line.",
}


def examples() -> list[Example]:
    return [Example(id=name, prompt=f"{SOURCE}\n\nSummarise.", completion=text) for name, text in COMPLETIONS.items()]


def write_answers(folder: Path) -> Path:
    path = folder / "answers.jsonl"
    write_examples(path, examples())
    return path


class ScriptedLesson(BaseModel):
    """A lesson as the page expects it."""

    id: str
    seconds: float
    answers: list[dict[str, Any]]
    refused_corrections: int = 0
    controls: list[dict[str, Any]]


class ScriptedTeacher:
    """Halves the probability of blamed words, and remembers what was asked of it."""

    def __init__(self) -> None:
        self.pending: str | None = None
        self.kept: list[str] = []
        self.calls: list[str] = []
        self.taught: list[tuple[Example, Feedback]] = []

    def teach(self, examples: Sequence[tuple[Example, Feedback]], control_prompts: Sequence[str] = ()) -> BaseModel:
        self.calls.append("teach")
        self.taught += examples
        self.pending = f"lesson-{len(self.calls)}"
        answers = []
        for example, feedback in examples:
            tokens = []
            for start in range(0, len(example.completion), 6):
                text = example.completion[start : start + 6]
                is_blamed = any(s.label == "poor" and s.start < start + 6 and s.end > start for s in feedback.spans)
                row = {"reward": -1.0, "before": 0.5, "after": 0.25} if is_blamed else dict.fromkeys(_ROW, 0.0)
                tokens.append({"text": text, **row})
            said = {"answer_before": "closed on Friday", "answer_after": "closed on Monday"}
            answers.append({"id": example.id, "tokens": tokens, "corrections": [], **said})
        controls = [
            {"prompt": prompt, "answer_before": "yes", "answer_after": "yes", "nats_per_token": 0.004}
            for prompt in control_prompts
        ]
        return ScriptedLesson(id=self.pending, seconds=1.5, answers=answers, controls=controls)

    def keep(self, lesson: str) -> None:
        self.calls.append(f"keep {lesson}")
        self.kept.append(lesson)
        self.pending = None

    def discard(self, lesson: str) -> None:
        self.calls.append(f"discard {lesson}")
        self.pending = None

    def undo(self) -> str:
        self.calls.append("undo")
        return self.kept.pop()

    def save(self, folder: Path) -> Path:
        self.calls.append(f"save {folder.name}")
        return folder


_ROW = ("reward", "before", "after")


def make_studio(path: Path, teacher: TeacherLike | None = None, **parts: Any) -> Studio:
    workspace = Workspace(path)
    lessons = Lessons(teacher, "scripted") if teacher else None
    return Studio(workspace, TrainingRuns(workspace.folder, None), lessons=lessons, **parts)


@contextmanager
def running(studio: Studio, **settings: Any) -> Iterator[str]:
    """Serve in a thread of this process and yield the address."""
    web = WebSettings(port=0, **settings)
    server = create_server(create_app(studio, web), web)
    with bind("127.0.0.1", 0) as listening:
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        finally:
            server.should_exit = True
            thread.join()


class StudioProcess:
    """`text2grad studio` in a process of its own, which can be killed and started again on the same port."""

    def __init__(self, *arguments: str | Path, port: int = 0) -> None:
        command = [sys.executable, "-m", "text2grad", "studio", *map(str, arguments), "--port", str(port)]
        environment = os.environ | {"PYTHONPATH": str(Path(text2grad.__file__).parents[1])}
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("The studio is at "), line + self.process.stdout.read()
        self.url = line.removeprefix("The studio is at ").strip()
        self.port = int(self.url.split("/")[2].rpartition(":")[2])

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self._wait()

    def stop(self) -> None:
        self.process.terminate()
        self._wait()

    def _wait(self) -> None:
        self.process.wait(30)
        assert self.process.stdout is not None
        self.process.stdout.close()


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
