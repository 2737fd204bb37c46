"""A source that is open in the studio: its answers, their annotations, and how to find them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from text2grad.errors import UserError
from text2grad.schema import Example, Feedback, Strict
from text2grad.studio.source import is_run, read_answers, record_key
from text2grad.studio.store import Head, Store

Filter = Literal["all", "open", "done", "skipped", "marked"]
_EXCERPT = 90


class RecordRow(Strict):
    """An answer in the list. others: how many other annotators have worked on it."""

    index: int
    id: str
    excerpt: str
    status: str
    marks: int


class Found(Strict):
    """The answers that match a search. indices: of all of them; rows: of the page that was asked for."""

    indices: list[int]
    rows: list[RecordRow]
    total: int
    done: int
    skipped: int


class Project:
    """A file or run with the annotations beside it."""

    def __init__(self, path: Path, store: Path | None = None, columns: Mapping[str, str] | None = None) -> None:
        answers = read_answers(path, columns)
        self.path, self.examples, self.skipped = path, answers.examples, answers.skipped
        self.keys = [record_key(example) for example in self.examples]
        self.store = Store(store or default_store(path))
        self._texts = [f"{e.id}\n{e.prompt_text}\n{e.completion}".casefold() for e in self.examples]
        self._by_prompt: dict[str, list[int]] = defaultdict(list)
        for index, example in enumerate(self.examples):
            self._by_prompt[example.prompt_text].append(index)

    @property
    def name(self) -> str:
        """The name of the file or run."""
        return self.path.resolve().name

    def siblings(self, index: int) -> list[int]:
        """Return the other answers to the same prompt."""
        return [other for other in self._by_prompt[self.examples[index].prompt_text] if other != index]

    def given_feedback(self, index: int) -> dict[str, Feedback]:
        """Return the feedback that others than annotators have on an answer, by critic: the source's own, and the
        predictions of critics.
        """
        found = dict(self.store.predictions(self.keys[index]).get(self.keys[index], {}))
        own = self.examples[index].feedback
        if own is not None and own.status == "ok":
            found.setdefault(own.critic, own)
        return found

    def find(self, annotator: str, text: str, shown: Filter, offset: int, limit: int) -> Found:
        """Return the answers that have the text in id, prompt or completion, in any case."""
        heads, wanted = self.store.heads(annotator), text.strip().casefold()
        blank = Head(status="open", marks=0)
        states = [heads.get(key, blank) for key in self.keys]
        indices = [
            index
            for index, head in enumerate(states)
            if (shown == "all" or head.status == shown or (shown == "marked" and head.marks))
            and (not wanted or wanted in self._texts[index])
        ]
        rows = []
        for index in indices[offset : offset + limit]:
            example, head = self.examples[index], states[index]
            excerpt = " ".join(example.completion[: 4 * _EXCERPT].split())[:_EXCERPT]
            rows.append(RecordRow(index=index, id=example.id, excerpt=excerpt, status=head.status, marks=head.marks))
        counts = [head.status for head in states]
        return Found(
            indices=indices,
            rows=rows,
            total=len(self.examples),
            done=counts.count("done"),
            skipped=counts.count("skipped"),
        )

    def close(self) -> None:
        """Close the store."""
        self.store.close()


def default_store(path: Path) -> Path:
    """Return where the annotations of a source are kept: in the run, or beside the file."""
    return path / "studio.sqlite" if is_run(path) else path.with_name(f"{path.name}.studio.sqlite")


def check_index(project: Project, index: int) -> Example:
    """Return an answer by its position; UserError where there is none."""
    if not 0 <= index < len(project.examples):
        raise UserError(f"there is no answer {index}; {project.name} has {len(project.examples)}")
    return project.examples[index]
