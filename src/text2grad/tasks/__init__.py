"""Where prompts come from: sets that ship with the package, and files of the user's."""

from typing import Literal

from text2grad.errors import UserError
from text2grad.schema import Example, read_examples
from text2grad.tasks import summaries


def load_examples(source: str, split: Literal["train", "heldout"]) -> list[Example]:
    """The examples of a built-in set (`summaries`), or of a JSON lines file."""
    examples = list(summaries.read(split) if source == "summaries" else read_examples(source))
    if not examples:
        raise UserError(f"{source}: the data set is empty; give at least one example with a prompt")
    return examples
