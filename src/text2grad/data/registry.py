"""Loading prompt sets by name, or from JSON lines files.

To add a data set, write a module with `load(split) -> Iterator[Example]` and add its import string to `DATASETS`.
"""

from __future__ import annotations

import importlib
from pathlib import Path

from text2grad.data.split import Split
from text2grad.errors import UserError
from text2grad.schema import Example, read_examples
from text2grad.settings import did_you_mean

# `summaries` ships with the package; the others are read from the folder that TEXT2GRAD_DATA names.
DATASETS = {
    "summaries": "text2grad.data.summaries:load",
    "scitldr": "text2grad.data.scitldr:load",
    "mbpp": "text2grad.data.mbpp:load",
    "xquad": "text2grad.data.xquad:load",
}


def load_examples(source: str, split: Split) -> list[Example]:
    """Load one split of the data set of that name, or all examples of a JSON lines file."""
    if source in DATASETS:
        module, _, function = DATASETS[source].partition(":")
        examples = list(getattr(importlib.import_module(module), function)(split))
    elif not Path(source).exists() and source.isidentifier():
        raise UserError(f'unknown data set "{source}"{did_you_mean(source, DATASETS)} Or give a JSON lines file')
    else:
        examples = list(read_examples(source))
    if not examples:
        raise UserError(f"{source}: the data set is empty; give at least one example with a prompt")
    return examples
