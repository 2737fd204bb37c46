"""Ask somebody who can read, a language model for instance, to quote what a comment is about."""

from __future__ import annotations

import re
from collections.abc import Callable

from text2grad.align.quotes import Match, locate_all

Ask = Callable[[str], str]

_QUESTION = """\
Below are an answer and a comment on it. Which parts of the answer is the comment about?
Copy them from the answer word for word, as short as possible, one part per line, and write nothing else.
If the comment is about no part of the answer in particular, write NONE.

Answer:
{completion}

Comment:
{comment}
"""
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")
_MARKS = "\"'`“”‘’«» "


def quotations(comment: str, completion: str, ask: Ask) -> list[Match]:
    """Where the quotations stand that `ask` gives in reply; those that are not in the completion are left out."""
    reply = ask(_QUESTION.format(completion=completion, comment=comment))
    lines = [_BULLET.sub("", line).strip(_MARKS) for line in reply.splitlines()]
    quotes = [line for line in lines if line and line != "NONE"]
    return [match for match in locate_all(quotes, completion) if match is not None]
