"""Which tokens of a text a correction replaced, deleted or inserted."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable

from text2grad.schema import Range


def diff_tokens(
    before: str, after: str, token: re.Pattern[str], normalize: Callable[[str], str] = str
) -> tuple[list[Range], list[Range]]:
    """Return the ranges of `before` that `after` replaced or deleted, and the ranges of `after` that it only inserted.

    token: matches one unit of comparison; what it does not match is ignored. normalize: applied before comparing.
    A range extends from the first to the last token of a change.
    """
    old, new = list(token.finditer(before)), list(token.finditer(after))
    old_keys, new_keys = ([normalize(match[0]) for match in matches] for matches in (old, new))
    changed: list[Range] = []
    inserted: list[Range] = []
    matcher = difflib.SequenceMatcher(None, old_keys, new_keys, autojunk=False)
    for operation, start, end, new_start, new_end in matcher.get_opcodes():
        if operation in ("replace", "delete"):
            changed.append((old[start].start(), old[end - 1].end()))
        elif operation == "insert":
            inserted.append((new[new_start].start(), new[new_end - 1].end()))
    return changed, inserted
