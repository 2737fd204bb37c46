"""What a kind of degenerate answer is made of: a task, and functions from a task to answers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

from text2grad.schema import Example
from text2grad.text.words import Text, parse_text


class Task:
    """One example as degenerate answers see it.

    honest: an honest attempt at the example, which some kinds spoil; None where there is none.
    """

    def __init__(self, example: Example, honest: str | None = None) -> None:
        self.example, self.honest = example, honest

    @property
    def prompt(self) -> str:
        """The text of the prompt."""
        return self.example.prompt_text.strip()

    @property
    def is_code(self) -> bool:
        """Whether the answer is a program that tests run."""
        return bool((self.example.tests or "").strip())

    @property
    def document(self) -> str:
        """The text that the task is about: `meta["document"]` or `meta["passage"]`, else the prompt; none for code."""
        given = self.example.meta.get("document") or self.example.meta.get("passage")
        if isinstance(given, str) and given.strip():
            return given.strip()
        return "" if self.is_code else self.prompt

    @property
    def references(self) -> list[str]:
        """The reference answers."""
        reference = self.example.reference
        return [reference] if isinstance(reference, str) else list(reference or [])

    @cached_property
    def source(self) -> Text:
        """The words of the document, or of the prompt where there is none."""
        return parse_text(self.document or self.prompt)

    def sentence(self, number: int) -> str:
        """Return a sentence of the source without what follows its last word."""
        words = self.source.sentences[number]
        return self.source.string[self.source.words[words.start].start : self.source.words[words.stop - 1].end]


class Kind(NamedTuple):
    """A kind of degenerate answers. make: from a task to answers of this kind, none where it makes no sense.

    spoils_honest: the answers are made from the honest attempt, and must not score above that same attempt.
    """

    name: str
    description: str
    make: Callable[[Task], list[str]]
    spoils_honest: bool = False
