"""Loading prompt sets: by name, from local files and folders, and from the Hugging Face hub.

To add a data set, write a module with `load(split) -> Iterator[Example]` and add its import string to `DATASETS`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path

from text2grad.data.columns import check_columns, row_to_example
from text2grad.data.rows import read_rows_of
from text2grad.data.split import Split
from text2grad.errors import UserError
from text2grad.schema import Example
from text2grad.settings import did_you_mean

# `summaries` ships with the package; the others come from the folder that TEXT2GRAD_DATA names, else from the hub.
DATASETS = {
    "summaries": "text2grad.data.summaries:load",
    "scitldr": "text2grad.data.scitldr:load",
    "mbpp": "text2grad.data.mbpp:load",
    "xquad": "text2grad.data.xquad:load",
}


def load_examples(source: str, split: Split, columns: Mapping[str, str] | None = None) -> list[Example]:
    """Load one split of the data set of that name, or the examples of a source of `read_rows_of`.

    columns: the column of each field of an example, see `row_to_example`; not for data sets by name.
    """
    if source in DATASETS:
        module, _, function = DATASETS[source].partition(":")
        examples = list(getattr(importlib.import_module(module), function)(split))
    elif not Path(source).exists() and source.isidentifier():
        raise UserError(
            f'unknown data set "{source}"{did_you_mean(source, DATASETS)} Or give a file, a folder, or hf:OWNER/NAME'
        )
    else:
        check_columns(columns or {})
        examples = [row_to_example(row, columns or {}) for row in read_rows_of(source, split)]
    if not examples:
        raise UserError(f"{source}: the data set is empty; give at least one example with a prompt")
    return examples
