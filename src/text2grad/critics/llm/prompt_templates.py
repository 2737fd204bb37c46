"""Prompts of LLM critics: one Markdown template per task, replaceable by the user.

A template is Jinja, in a sandbox. It may use `prompt`, `completion`, `reference`, `tests`, `test_log` and
`{% include "form.md" %}`, which describes the format of the reply. Each of these texts comes with a fence around it,
and the prompt begins with what the fences mean (`fence.py`).
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Literal, get_args

from jinja2 import FileSystemLoader, StrictUndefined, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from text2grad.critics.llm.fence import Fence, split_control_tokens
from text2grad.errors import UserError
from text2grad.schema import Example

Task = Literal["general", "summarise", "code", "qa"]
TASKS: tuple[Task, ...] = get_args(Task)
TEMPLATE_FOLDER = Path(__file__).parent / "templates"


_ALWAYS = ("prompt", "completion")  # the others are None where there is nothing
_PROBE = Example(id="", prompt="\N{BULLET} prompt", completion="\N{BULLET} completion")


class PromptTemplate:
    """A template that renders an example as a prompt for the critic."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise UserError(f"{path}: no such prompt template; give a file, or one of the tasks {', '.join(TASKS)}")
        # A user's template may include those of the package (form.md).
        environment = ImmutableSandboxedEnvironment(
            loader=FileSystemLoader([path.parent, TEMPLATE_FOLDER]),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            autoescape=False,
        )
        try:
            self._template = environment.get_template(path.name)
            probe = self.render(_PROBE)
        except (TemplateError, ArithmeticError, TypeError, ValueError) as error:
            raise UserError(f"{path}: {error}") from error
        if not re.search(rf"<answer-(\w+)>\n{_PROBE.completion}\n</answer-\1>", probe):
            raise UserError(f"{path}: the template never shows the whole completion; add {{{{ completion }}}}")
        # The rendering covers included templates.
        content = path.read_text(encoding="utf-8") + probe
        self.digest = hashlib.blake2b(content.encode(), digest_size=8).hexdigest()

    @classmethod
    def load(cls, task: Task, path: Path | None = None) -> PromptTemplate:
        """Load the user's template, else the one of the task."""
        return cls(path or TEMPLATE_FOLDER / f"{task}.md")

    def render(self, example: Example, unknown_tokenizer: bool = False) -> str:
        """Return the prompt about this example, with the test log of `meta["test_log"]` if there is one.

        unknown_tokenizer: whoever encodes the prompt may take control tokens in its texts for their own.
        """
        reference = example.reference
        given = {
            "prompt": ("task", example.prompt_text),
            "completion": ("answer", example.completion),
            "reference": ("reference", "\n".join(reference) if isinstance(reference, list) else reference),
            "tests": ("tests", example.tests),
            "test_log": ("test_log", example.meta.get("test_log")),
        }
        clean = split_control_tokens if unknown_tokenizer else str
        texts = {name: (tag, clean(str(text))) for name, (tag, text) in given.items() if text or name in _ALWAYS}
        fence = Fence(text for _, text in texts.values())
        fenced = dict.fromkeys(given) | {name: fence.wrap(tag, text) for name, (tag, text) in texts.items()}
        return f"{fence.instructions}\n\n{self._template.render(fenced).strip()}"
