"""A Griffe extension: the lines of a docstring that explain single names become a list."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_NAMES = re.compile(r"^((?:\w+, )*\w+): (?=\S)", re.MULTILINE)


class NamesAsList(Extension):
    """`name: what it is` at the start of a line is an item; lines that are indented below it belong to it."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Change the docstring of an object when it was read."""
        if obj.docstring is not None:
            obj.docstring.value = names_as_list(obj.docstring.value)


def names_as_list(text: str) -> str:
    """Return the text with a list item for each such line, and an empty line before the first."""
    first, _, rest = text.partition("\n")  # the first line is a sentence
    listed = _NAMES.sub(lambda found: f"- `{found[1]}`: ", rest)
    return first + "\n" + re.sub(r"^(?!- |\s*$)(.*)\n(?=- `)", r"\1\n\n", listed, count=1, flags=re.MULTILINE)
