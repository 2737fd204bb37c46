"""Lessons for the loaded model, one at a time in a thread of its own."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

from pydantic import BaseModel

from text2grad.schema import Example, Feedback
from text2grad.studio.project import Project

_CONTROLS = 3


class TeacherLike(Protocol):
    """What `text2grad.studio.teaching.Teacher` offers."""

    @property
    def pending(self) -> str | None: ...

    @property
    def kept(self) -> list[str]: ...

    def teach(self, examples: Sequence[tuple[Example, Feedback]], control_prompts: Sequence[str] = ()) -> BaseModel: ...

    def keep(self, lesson: str) -> None: ...

    def discard(self, lesson: str) -> None: ...

    def undo(self) -> str: ...

    def save(self, folder: Path) -> Path: ...


class Lessons:
    """Runs the teacher's methods in one thread. model: its name for the page."""

    def __init__(self, teacher: TeacherLike, model: str) -> None:
        self.model, self._teacher = model, teacher
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="teacher")
        self.last: dict[str, Any] | None = None  # the lesson that is neither kept nor discarded

    def state(self) -> dict[str, Any]:
        """Return what the page shows: the lesson that waits, and how many were kept."""
        return {"model": self.model, "pending": self.last, "kept": len(self._teacher.kept)}

    def teach(self, examples: Sequence[tuple[Example, Feedback]], controls: Sequence[str]) -> dict[str, Any]:
        """Apply feedback and return the lesson; it waits to be kept or discarded."""

        def run() -> dict[str, Any]:
            lesson: dict[str, Any] = self._teacher.teach(examples, controls).model_dump(mode="json")
            self.last = lesson
            return lesson

        return self._thread.submit(run).result()

    def decide(self, lesson: str, keep: bool) -> None:
        """Keep or discard the lesson that waits."""

        def run() -> None:
            self._teacher.keep(lesson) if keep else self._teacher.discard(lesson)
            self.last = None

        self._thread.submit(run).result()

    def undo(self) -> None:
        """Take back the last lesson that was kept."""
        self._thread.submit(self._teacher.undo).result()

    def save(self, folder: Path) -> Path:
        """Write the taught model as a run folder."""
        return self._thread.submit(self._teacher.save, folder).result()

    def close(self) -> None:
        """Wait for the running lesson."""
        self._thread.shutdown(cancel_futures=True)


def control_prompts(project: Project, index: int) -> list[str]:
    """Return prompts of the source that should not change: of other answers, spread over it."""
    own = project.examples[index].prompt_text
    others = list(dict.fromkeys(e.prompt_text for e in project.examples if e.prompt_text != own))
    step = max(1, len(others) // _CONTROLS)
    return others[::step][:_CONTROLS]
