"""Which tests the prompt shows: passing those proves nothing, a program can repeat what it has read."""

from __future__ import annotations

import re
from dataclasses import replace

from text2grad.critics.code.cases import Case, Suite

_MAX_GAP = 40  # characters between a call and its result: "==", "returns", "should be", a line of a doctest


def mark_shown(suite: Suite, prompt: str) -> Suite:
    """Return the suite with `is_shown` set where the prompt has the test, or the call and then its result."""
    text = _normalise(prompt)
    return replace(suite, cases=tuple(replace(case, is_shown=_is_shown(case, text)) for case in suite.cases))


def _is_shown(case: Case, text: str) -> bool:
    if _normalise(case.source) in text:
        return True
    if case.left is None or "(" not in case.left:
        return False
    call = _normalise(case.left)
    result = _normalise(case.right or "")
    ends = [match.end() for match in re.finditer(re.escape(call), text)]
    return any(result in text[end : end + _MAX_GAP + len(result)] for end in ends)


def _normalise(text: str) -> str:
    return re.sub(r"\s+", "", text).replace('"', "'")
