"""What the completion should have said: sentences and clauses dropped."""

from __future__ import annotations

import re
from random import Random

from text2grad.reward_model.corruptions.edits import Edit
from text2grad.reward_model.corruptions.material import FaithfulText, Pool

_CLAUSE = re.compile(
    r", [^,.;:()]{12,100}(?=\.(?:\s|$))|(?: (?:because|after|so that|while|when|despite) [^,.;]{8,100})(?=\.)"
)
_MAX_LENGTH = 120  # of an omission in a generated critique


def drop_words(text: FaithfulText, _: Pool, rng: Random) -> Edit | None:
    """Drop a sentence, though not the first, or the clause at the end of one."""
    parsed, string = text.completion, text.completion.string
    ranges = [match.span() for match in _CLAUSE.finditer(string)]
    for one, following in zip(parsed.sentences[1:], [*parsed.sentences[2:], None], strict=False):
        start = parsed.words[one[0]].start
        end = parsed.words[following[0]].start if following else len(string.rstrip())
        ranges.append((start, end) if following else (len(string[:start].rstrip()), end))
    fitting = [(start, end) for start, end in ranges if 0 < end - start <= _MAX_LENGTH and start > 0]
    return Edit(*rng.choice(fitting), "", "omission") if fitting else None
