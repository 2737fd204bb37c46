"""Prompts of LLM critics: one Markdown template per task, replaceable by the user.

A template is Jinja. It may use `prompt`, `completion`, `reference`, `tests`, `test_log` and `{% include "form.md" %}`,
which describes the format of the reply.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Literal, get_args

from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateError

from text2grad.errors import UserError
from text2grad.schema import Example

Task = Literal["general", "summarise", "code", "qa"]
TASKS: tuple[Task, ...] = get_args(Task)
TEMPLATE_FOLDER = Path(__file__).parent / "templates"


class PromptTemplate:
    """A template that renders an example as a prompt for the critic."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise UserError(f"{path}: no such prompt template; give a file, or one of the tasks {', '.join(TASKS)}")
        # A user's template may include those of the package (form.md).
        environment = Environment(
            loader=FileSystemLoader([path.parent, TEMPLATE_FOLDER]),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            autoescape=False,
        )
        try:
            self._template = environment.get_template(path.name)
            probe = self.render(Example(id="", prompt="\N{BULLET} prompt", completion="\N{BULLET} completion"))
        except (TemplateError, UnicodeDecodeError) as error:
            raise UserError(f"{path}: {error}") from error
        if "\N{BULLET} completion" not in probe:
            raise UserError(f"{path}: the template never shows the completion; add {{{{ completion }}}}")
        # The rendering covers included templates.
        content = path.read_text(encoding="utf-8") + probe
        self.digest = hashlib.blake2b(content.encode(), digest_size=8).hexdigest()

    @classmethod
    def load(cls, task: Task, path: Path | None = None) -> PromptTemplate:
        """Load the user's template, else the one of the task."""
        return cls(path or TEMPLATE_FOLDER / f"{task}.md")

    def render(self, example: Example) -> str:
        """Return the prompt about this example, with the test log of `meta["test_log"]` if there is one."""
        reference = example.reference
        return self._template.render(
            prompt=example.prompt_text,
            completion=example.completion,
            reference="\n".join(reference) if isinstance(reference, list) else reference,
            tests=example.tests,
            test_log=example.meta.get("test_log"),
        ).strip()
