"""Corrections to targets: the tokens that should have been sampled, and the place in the completion where they start.

A replacement of the characters [s, e) is a *branch* of the completion. It leaves the completion at the first sampled
token that overlaps s, or before it where a character would be cut, or where the new words take along a space that was a
token of its own; after exactly the ids that were sampled. Its own ids
encode the characters of that token before s, the replacement, and what follows in the completion, all together, so that
they are split as the tokenizer splits running text. They are cut after the replacement and a number of further tokens,
and not before they differ from what was sampled. An insertion is a replacement of no characters.

Corrections that are near each other share one branch, in which each follows the corrected text before it: what the
model will have written there once it has learned the earlier ones. The text between them is read, not learned.

A branch is refused where decoding the sampled prefix and the branch does not give exactly the corrected text.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from text2grad.align.tokens import decode, offsets, overlapping
from text2grad.rewards.credit import SMALLEST_CONFIDENCE, certain_omissions
from text2grad.schema import Feedback, Range

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Encode = Callable[[str], list[int]]
Prefix = Literal["corrected", "sampled"]
LOOKAHEAD = 8  # sampled tokens after the correction that are encoded with it, though few of them become targets
DELETION_CONTINUATION = 2  # what follows is all that a deletion can teach
MAX_BETWEEN = 8  # sampled tokens between corrections of one branch: they are read once more


class Edit(NamedTuple):
    """The characters [start, end) of a completion become `replacement`. weight: how much that counts."""

    start: int
    end: int
    replacement: str
    weight: float


class Correction(NamedTuple):
    """Tokens of a branch that should have been sampled.

    start, end: the sampled tokens in whose place they belong; at the end of the completion, its length.
    first, last: the range of its tokens among those of the branch; at least one.
    weight: severity times confidence.
    """

    start: int
    end: int
    first: int
    last: int
    weight: float


class CorrectedBranch(NamedTuple):
    """A corrected completion from the place where it leaves the sampled one.

    start: index of the first sampled token that is not part of it; the number of sampled tokens at their end.
    ids: its tokens after the sampled ones before `start`. corrections: in order; at least one.
    """

    start: int
    ids: list[int]
    corrections: list[Correction]

    def fit(self, max_tokens: int) -> CorrectedBranch | None:
        """Return the branch with those of its corrections that end within `max_tokens` sampled and own tokens."""
        fitting = [correction for correction in self.corrections if self.start + correction.last <= max_tokens]
        if not fitting:
            return None
        return CorrectedBranch(self.start, self.ids[: max(correction.last for correction in fitting)], fitting)


class Completion(NamedTuple):
    """A sampled completion. text: `decode(ids)`. ranges: `offsets(ids)`. ended: whether the last id is an end token."""

    ids: Sequence[int]
    text: str
    ranges: Sequence[Range]
    ended: bool


def find_corrections(
    feedback: Feedback,
    completion: Completion,
    tokenizer: PreTrainedTokenizerBase,
    encode: Encode,
    continuation: int = 0,
    prefix: Prefix = "corrected",
    max_tokens: int | None = None,
    min_confidence: float = 0.0,
) -> tuple[list[CorrectedBranch], int]:
    """Return the corrections of a completion, and how many were refused. For other arguments see `correct`.

    prefix: what a correction follows: the text with near corrections made, or as it was sampled. Corrections that
    overlap others, or that cannot be spelled together with them, follow the sampled text.
    max_tokens: of the completion and of each branch with what is before it, None for any number.
    min_confidence: corrections of spans that are less certain are left out, as their blame is (`Credit`).
    """
    text = completion.text
    changes = _join_deletions(sorted(edits(feedback, text, min_confidence), key=lambda edit: edit[:2]))
    effective = [edit for edit in changes if text[edit.start : edit.end] != edit.replacement]
    together, apart = without_overlaps(effective) if prefix == "corrected" else ([], effective)
    branches = []
    for group in _near(together, completion.ranges):
        branch = correct(group, completion, tokenizer, encode, continuation)
        if branch is None:
            apart += group if len(group) > 1 else []
        else:
            branches.append(branch)
    found = [correct([edit], completion, tokenizer, encode, continuation) for edit in apart]
    branches += [branch for branch in found if branch is not None]
    if max_tokens is not None:
        branches = [fitting for branch in branches if (fitting := branch.fit(max_tokens))]
    return branches, len(changes) - sum(len(branch.corrections) for branch in branches)


def _near(changes: Sequence[Edit], ranges: Sequence[Range]) -> list[list[Edit]]:
    """Return edits in groups with at most `MAX_BETWEEN` sampled tokens between neighbours."""
    groups: list[list[Edit]] = []
    end = -1
    for edit in changes:
        start, stop = _replaced_tokens(edit, ranges)
        if groups and start - end <= MAX_BETWEEN:
            groups[-1].append(edit)
        else:
            groups.append([edit])
        end = stop
    return groups


def _join_deletions(changes: Sequence[Edit]) -> list[Edit]:
    """Return edits in order with neighbouring deletions as one: all of them teach the same tokens, once."""
    joined: list[Edit] = []
    for edit in changes:
        last = joined[-1] if joined else None
        if last and last.end == edit.start and not last.replacement and not edit.replacement:
            joined[-1] = Edit(last.start, edit.end, "", max(last.weight, edit.weight))
        else:
            joined.append(edit)
    return joined


def without_overlaps(changes: Sequence[Edit]) -> tuple[list[Edit], list[Edit]]:
    """Return of edits in order those that can be made together, and those that overlap one of them."""
    together: list[Edit] = []
    apart: list[Edit] = []
    for edit in changes:
        is_free = not together or edit.start >= together[-1].end
        (together if is_free else apart).append(edit)
    return together, apart


def edits(feedback: Feedback, text: str, min_confidence: float = 0.0) -> Iterator[Edit]:
    """Yield the replacements of spans and the insertions of omissions; failed feedback has none.

    text: the completion. min_confidence: what is less certain is left out. A deletion of words takes one of the spaces
    around them along; what is inserted where they begin or end replaces them. Insertions at one place are written one
    after the other.
    """
    if feedback.status == "failed":
        return
    insertions: dict[int, list[tuple[str, float]]] = {}
    for omission, weight in certain_omissions(feedback, min_confidence):
        if omission.insert_at is not None and omission.insertion is not None:
            insertions.setdefault(omission.insert_at, []).append((omission.insertion, weight))
    for span in feedback.spans:
        if span.replacement is None or span.confidence < max(min_confidence, SMALLEST_CONFIDENCE):
            continue
        weight, start, end, replacement = span.severity * span.confidence, span.start, span.end, span.replacement
        if not replacement:
            added = insertions.pop(start, []) + insertions.pop(end, [])
            replacement = "".join(text for text, _ in added).strip()
            weight = max([weight, *(of_added for _, of_added in added)])
        if not replacement:
            start, end = _with_space(start, end, text)
        yield Edit(start, end, replacement, weight)
    for place, added in insertions.items():
        yield Edit(place, place, "".join(text for text, _ in added), max(weight for _, weight in added))


def _with_space(start: int, end: int, text: str) -> Range:
    """Extend a range by the space before it, or at the start of the text by the one after it, if one would be left."""
    if start and text[start - 1] == " " and (end == len(text) or text[end].isspace() or text[end] in ".,;:!?)"):
        return start - 1, end
    return (start, end + 1) if start == 0 and text[end : end + 1] == " " else (start, end)


def correct(
    changes: Sequence[Edit],
    completion: Completion,
    tokenizer: PreTrainedTokenizerBase,
    encode: Encode,
    continuation: int = 0,
) -> CorrectedBranch | None:
    """Return the branch of edits, or None where there is none.

    changes: at least one edit that changes something; in order, without overlap.
    encode: text -> ids, without special tokens. continuation: tokens after each replacement, which lead back into the
    completion; for a deletion at least `DELETION_CONTINUATION`, and for what is added at the end all: without the end
    token, it would teach to write on, and never to stop.
    None: the edits leave no text, or nothing follows a deletion, or they continue a truncated completion, or the
        tokenizer cannot spell them.
    """
    text, ranges = completion.text, completion.ranges
    if not completion.ended and changes[-1].start == len(text):
        return None  # it would teach to break off what was being written
    replaced = [_replaced_tokens(edit, ranges) for edit in changes]
    start, end = replaced[0][0], replaced[-1][1]
    while 0 < start < len(ranges) and ranges[start - 1][1] > ranges[start][0]:
        start -= 1
    lookahead, after = min(end + LOOKAHEAD, len(ranges)), changes[-1].end
    follows = text[after : max(ranges[lookahead - 1][1], after)] if lookahead < len(ranges) else text[after:]
    corrected, places = apply_edits(text, changes)
    if not corrected.strip():
        return None
    wanted = corrected[: places[-1][1]] + follows
    ends = [completion.ids[-1]] if completion.ended and lookahead == len(ranges) else []
    written = _spell(start, completion, wanted, tokenizer, encode)
    if start and changes[0].replacement and text[slice(*ranges[start - 1])] == " ":  # as before a digit
        with_space = _spell(start - 1, completion, wanted, tokenizer, encode)
        if with_space is not None and with_space[start - 1] != completion.ids[start - 1]:
            start, written = start - 1, with_space
    if written is None:
        return None
    written += ends
    replaced[0] = (start, replaced[0][1])
    found, tokens, until = [], offsets(written, tokenizer), 0
    for edit, place, sampled in zip(changes, places, replaced, strict=True):
        shared = edit.start - ranges[sampled[0]][0] if sampled[0] < len(ranges) else 0  # characters of its first token
        first = max(_token_at(max(place[0] - max(shared, 0), until), tokens), start)
        until = place[1]
        instead = completion.ids[sampled[0] :]
        differs = next((i for i, token in enumerate(written[first:]) if [token] != list(instead[i : i + 1])), None)
        if differs is None:
            continue
        more = continuation if edit.replacement else max(continuation, DELETION_CONTINUATION)
        if edit.start == edit.end and not text[edit.end :].strip():
            more = len(written)
        stop = _cut(tokens, first, place[1], more, first + differs + 1)
        found.append(Correction(*sampled, first - start, stop - start, edit.weight))
    stop = start + max((correction.last for correction in found), default=0)
    if not found or not wanted.startswith(decode(written[:stop], tokenizer)):
        return None
    return CorrectedBranch(start, written[start:stop], found)


def _spell(
    start: int, completion: Completion, wanted: str, tokenizer: PreTrainedTokenizerBase, encode: Encode
) -> list[int] | None:
    """Return the ids of the wanted text that begin with the first `start` sampled ones; None if there are none."""
    branch_at = completion.ranges[start][0] if start < len(completion.ranges) else len(completion.text)
    prefix = list(completion.ids[:start])
    candidates = ([*prefix, *ids] for ids in _encodings(completion.text[:branch_at], wanted[branch_at:], encode))
    return next((ids for ids in candidates if decode(ids, tokenizer) == wanted), None)


def apply_edits(text: str, changes: Sequence[Edit]) -> tuple[str, list[Range]]:
    """Return the corrected text, and the places of the replacements in it; a deletion's has no width.

    changes: in order, without overlap.
    """
    corrected, places, at = "", [], 0
    for edit in changes:
        corrected += text[at : edit.start]
        places.append((len(corrected), len(corrected) + len(edit.replacement)))
        corrected += edit.replacement
        at = edit.end
    return corrected + text[at:], places


def _token_at(place: int, ranges: Sequence[Range]) -> int:
    """Return the index of the first token that does not end before a character; the end token has no characters."""
    return next((i for i, (start, end) in enumerate(ranges) if end > place or start >= place), len(ranges))


def _replaced_tokens(edit: Edit, ranges: Sequence[Range]) -> Range:
    """Return the sampled tokens that the edit replaces, as a range of indices; for an insertion the one after it."""
    tokens = overlapping(edit.start, edit.end, ranges)
    if tokens:
        return tokens[0], tokens[-1] + 1
    start = bisect_left(ranges, (edit.start,))
    if start and ranges[start - 1][1] > edit.start:  # an insertion inside a token
        start -= 1
    return start, min(start + 1, len(ranges))


def _encodings(before: str, text: str, encode: Encode) -> Iterator[list[int]]:
    """Yield ids that may spell `text` after `before`: tokenizers treat the start of a text in several ways."""
    if not text:
        yield []
        return
    yield encode(text)
    if text.startswith(" "):  # one that begins every text with a space
        yield encode(text[1:])
    context, whole = encode(before), encode(before + text)
    if whole[: len(context)] == context:
        yield whole[len(context) :]


def _cut(ranges: Sequence[Range], start: int, until: int, more: int, at_least: int) -> int:
    """Return the index after the tokens from `start` on that reach the character `until`, and after `more` others.

    ranges: of all tokens. at_least: the smallest result. A character is never cut.
    """
    stop = start
    while stop < len(ranges) and ranges[stop][0] < until:
        stop += 1
    stop = min(max(stop + more, at_least), len(ranges))
    while stop < len(ranges) and ranges[stop][0] < ranges[stop - 1][1]:
        stop += 1
    return stop
