"""Where prompts come from: sets that ship with the package, public sets in a folder, and files of the user's."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from text2grad.data import mbpp, scitldr, summaries, xquad
from text2grad.data.split import split_by_prompt
from text2grad.errors import UserError
from text2grad.schema import Example, read_examples

Split = Literal["train", "heldout"]
DATA = "TEXT2GRAD_DATA"


def load_examples(source: str, split: Split) -> list[Example]:
    """The examples of a set by name, or of a JSON lines file.

    `summaries` ships with the package; `scitldr`, `mbpp` and `xquad` are in the folder that TEXT2GRAD_DATA names.
    """
    read = SETS.get(source)
    examples = list(read(split) if read else read_examples(source))
    if not examples:
        raise UserError(f"{source}: the data set is empty; give at least one example with a prompt")
    return examples


def _scitldr(split: Split) -> Iterator[Example]:
    name = {"train": "train", "heldout": "dev"}[split]
    return scitldr.read(_file("scitldr", f"scitldr_a/{name}.jsonl.gz"))


def _mbpp(split: Split) -> Iterator[Example]:
    return mbpp.read(_file("mbpp", "mbpp/mbpp.jsonl.gz"), "train" if split == "train" else "validation")


def _xquad(split: Split) -> Iterator[Example]:
    """A fifth of the paragraphs is held out, with all questions about them."""
    examples = xquad.read(_file("xquad", "xquad_en/xquad.en.json.gz"))
    train, heldout = split_by_prompt(examples, share=0.2, key=lambda example: str(example.meta["document"]))
    return iter(train if split == "train" else heldout)


SETS: dict[str, Callable[[Split], Iterator[Example]]] = {
    "summaries": summaries.read,
    "scitldr": _scitldr,
    "mbpp": _mbpp,
    "xquad": _xquad,
}


def _file(name: str, path: str) -> Path:
    folder = os.environ.get(DATA)
    if folder is None or not Path(folder, path).is_file():
        raise UserError(
            f'data set "{name}": {DATA} must name a folder that holds {path} '
            f"(now: {folder or 'not set'}); or give the path of a JSON lines file instead"
        )
    return Path(folder, path)
