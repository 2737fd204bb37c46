"""A known right answer, and where another answer gives it, contradicts it, or hedges."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from text2grad.text.lexicon import CALENDAR_WORDS
from text2grad.text.words import Key, Text, Word, consecutive_runs, find_names, parse_text

Kind = Literal["number", "name", "phrase"]

# More than this share of a right answer's words is a right answer too, worth as much less.
ENOUGH = 0.5
_MOST_BETWEEN = 1
_LEAD = "is "  # in the middle of a sentence, capitals tell names
_JOINT = re.compile(r"\s*(?:[,;/]?\s*\b(?:or|and)\b|[,;/]|\n\s*[-*•]?)\s*", re.IGNORECASE)


class Gold(NamedTuple):
    """A right answer of a few words. `keys` are its content words, or all of its words where none has content."""

    text: str
    kind: Kind
    keys: tuple[Key, ...]
    values: frozenset[Key]

    def mentions(self, answer: Text) -> Iterator[tuple[range, float]]:
        """Runs of words, each within a sentence, that give this answer, with the share of its words that they have.

        Numbers must all be there; of other words more than half, or the last one of a name.
        """
        for sentence in answer.sentences:
            for group in _groups(answer, [i for i in sentence if answer.keys[i] in self.keys]):
                distinct = {answer.keys[i] for i in group}
                share = len(distinct) / len(set(self.keys))
                is_surname = self.kind == "name" and self.keys[-1] in distinct
                if self.values <= distinct and (share > ENOUGH or is_surname):
                    yield range(group[0], group[-1] + 1), share


def read_gold(text: str) -> Gold:
    """The kind of an answer, and what to look for."""
    words = parse_text(_LEAD + text)
    own = words.words[1:]
    content = [word for word in own if word.is_content] or list(own)
    values = frozenset(word.lexeme.key for word in content if word.lexeme.is_number)
    named = {i for name in find_names(words) for i in name}
    in_names = sum(i in named for i in range(1, len(words.words)))
    kind: Kind = "phrase"
    if values or any(_is_calendar(word) for word in content):
        kind = "number"
    elif content and 2 * in_names > len(content):
        kind = "name"
    return Gold(text, kind, tuple(word.lexeme.key for word in content), values)


def rivals(answer: Text, gold: Gold, known: frozenset[Key], proper: frozenset[Key]) -> list[range]:
    """Runs of words that are another answer of the gold one's kind.

    known: the words of the question, which are no answer to it. proper: words that are names in the passage, also where
    the answer begins with one. For a phrase, any content words may be the answer.
    """
    taken = known.union(gold.keys)

    def is_rival(i: int) -> bool:
        word = answer.words[i]
        if word.lexeme.key in taken or not word.is_content:
            return False
        if gold.kind == "number":
            return word.lexeme.is_number or _is_calendar(word)
        if word.lexeme.is_number:
            return False
        is_name = word.looks_like_name or (word.text[0].isupper() and word.lexeme.key in proper)
        return is_name if gold.kind == "name" else True

    return [run for sentence in answer.sentences for run in consecutive_runs(i for i in sentence if is_rival(i))]


def hedges(
    answer: Text, given: range, others: Sequence[range], known: frozenset[Key], passage: Text | None
) -> list[range]:
    """The rivals among `others` that are offered besides the given answer.

    Either lined up with it, as in "24, 308 or 136", but not "Denver, Colorado" if the passage says so; or in a sentence
    of their own that says nothing else than the question does, as in "It was 24. It was 308."
    """
    lined_up = [given]
    for direction in (others, others[::-1]):
        for run in direction:
            if run not in lined_up and any(_joined(answer, run, other) for other in lined_up):
                lined_up.append(run)
    offered = [run for run in lined_up[1:] if passage is None or not _says(passage, answer, given, run)]
    alone = [run for run in others if run not in lined_up and _is_alone(answer, run, given, known)]
    return sorted([*offered, *alone], key=lambda run: run.start)


def _is_alone(answer: Text, run: range, given: range, known: frozenset[Key]) -> bool:
    sentence = answer.sentences[answer.words[run.start].sentence]
    besides = [i for i in sentence if i not in run and answer.words[i].is_content]
    return given.start not in sentence and all(answer.keys[i] in known for i in besides)


def _joined(answer: Text, one: range, other: range) -> bool:
    first, second = sorted((one, other), key=lambda run: run.start)
    if first.stop > second.start:
        return False
    gap = answer.string[answer.words[first.stop - 1].end : answer.words[second.start].start]
    are_numbers = answer.words[first.stop - 1].lexeme.is_number and answer.words[second.start].lexeme.is_number
    return _JOINT.fullmatch(gap) is not None or (are_numbers and not gap.strip())


def _says(passage: Text, answer: Text, one: range, other: range) -> bool:
    """Whether the passage has both in a row."""
    both = answer.keys[min(one.start, other.start) : max(one.stop, other.stop)]
    return any(passage.keys[i : i + len(both)] == both for i in range(len(passage.keys) - len(both) + 1))


def _groups(answer: Text, indices: Sequence[int]) -> list[list[int]]:
    """Indices with at most one content word between neighbours."""
    groups: list[list[int]] = []
    for i in indices:
        between = range(groups[-1][-1] + 1, i) if groups else range(0)
        if groups and sum(answer.words[j].is_content for j in between) <= _MOST_BETWEEN:
            groups[-1].append(i)
        else:
            groups.append([i])
    return groups


def _is_calendar(word: Word) -> bool:
    return word.text.lower() in CALENDAR_WORDS and word.text[0].isupper()
