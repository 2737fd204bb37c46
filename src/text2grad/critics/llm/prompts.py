"""The questions that an LLM critic is asked: one Markdown template a task, readable and replaceable.

A template is Jinja. It may use `prompt`, `completion`, `reference`, `tests`, `test_log` and `{% include "form.md" %}`,
which describes the form of the reply.
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
FOLDER = Path(__file__).parent / "templates"


class Prompt:
    """A template that turns an example into the question about it."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise UserError(f"{path}: no such prompt; give a file, or one of the tasks {', '.join(TASKS)}")
        self.path = path
        # A user's template comes first, the package's own parts (form.md) are there to be included.
        environment = Environment(
            loader=FileSystemLoader([path.parent, FOLDER]),
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
            raise UserError(f"{path}: the prompt never shows the answer; put {{{{ completion }}}} where it belongs")
        self.digest = hashlib.blake2b(self._wording(probe).encode(), digest_size=8).hexdigest()

    @classmethod
    def of(cls, task: Task, path: Path | None = None) -> Prompt:
        """The user's own template, else the one of the task."""
        return cls(path or FOLDER / f"{task}.md")

    def render(self, example: Example) -> str:
        """The question about this example, the test log of `meta["test_log"]` included where there is one."""
        reference = example.reference
        return self._template.render(
            prompt=example.prompt_text,
            completion=example.completion,
            reference="\n".join(reference) if isinstance(reference, list) else reference,
            tests=example.tests,
            test_log=example.meta.get("test_log"),
        ).strip()

    def _wording(self, probe: str) -> str:
        """What identifies the template, its included parts among it: source and a rendering."""
        return self.path.read_text(encoding="utf-8") + probe
