"""Gold answers: where an answer gives one of them, gives another answer instead, or hedges."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from text2grad.text.lexicon import CALENDAR_WORDS
from text2grad.text.words import Key, Text, Word, consecutive_runs, parse_text

Kind = Literal["number", "name", "phrase"]

# An answer with more than this share of a gold answer's words is correct, and worth that share.
MIN_SHARE = 0.5
MIN_ITEMS = 4
_MAX_GAP = 1
_MAX_ITEM = 4  # words
_MIN_ORDERED = 5  # words
_LEAD = "is "  # within a sentence, capitals indicate names
_SEPARATOR = re.compile(r"\s*(?:[,;/]?\s*\b(?:or|and)\b|[,;/]|\n\s*[-*•]?)\s*", re.IGNORECASE)


class Gold(NamedTuple):
    """A gold answer of a few words. `keys` are its content words, or all of its words if it has none."""

    text: str
    kind: Kind
    keys: tuple[Key, ...]
    values: frozenset[Key]

    def mentions(self, answer: Text) -> Iterator[tuple[range, float]]:
        """Yield runs of words, each within a sentence, that give this answer, with the share of its words.

        They need all of its numbers, and more than half of its words or the last word of a name; the words of a long
        one in their order.
        """
        for sentence in answer.sentences:
            for group in _groups(answer, [i for i in sentence if answer.keys[i] in self.keys]):
                distinct = {answer.keys[i] for i in group}
                share = len(distinct) / len(set(self.keys))
                if len(self.keys) >= _MIN_ORDERED:
                    share = min(share, common_in_order(self.keys, [answer.keys[i] for i in group]) / len(self.keys))
                is_surname = self.kind == "name" and self.keys[-1] in distinct
                if self.values <= distinct and (share > MIN_SHARE or is_surname):
                    yield range(group[0], group[-1] + 1), share


def parse_gold(text: str) -> Gold:
    """Determine the kind and the words of a gold answer."""
    words = parse_text(_LEAD + text)
    own = words.words[1:]
    content = [word for word in own if word.is_content] or list(own)
    values = frozenset(word.lexeme.key for word in content if word.lexeme.is_number)
    named = {i for name in words.names for i in name}
    in_names = sum(i in named for i in range(1, len(words.words)))
    kind: Kind = "phrase"
    if values or any(_is_calendar(word) for word in content):
        kind = "number"
    elif content and 2 * in_names > len(content):
        kind = "name"
    return Gold(text, kind, tuple(word.lexeme.key for word in content), values)


def competing_answers(answer: Text, gold: Gold, question: frozenset[Key], names: frozenset[Key]) -> list[range]:
    """Return runs of words that are another answer of the gold one's kind; for a phrase, any content words.

    question: the words of the question, which are no answer to it. names: the words of names in the passage, to tell a
    name from another word at the start of a sentence.
    """
    excluded = question.union(gold.keys)

    def competes(i: int) -> bool:
        word = answer.words[i]
        if word.lexeme.key in excluded or not word.is_content:
            return False
        if gold.kind == "number":
            return word.lexeme.is_number or _is_calendar(word)
        if word.lexeme.is_number:
            return False
        is_name = word.looks_like_name or (word.text[0].isupper() and word.lexeme.key in names)
        return is_name if gold.kind == "name" else True

    runs = [run for sentence in answer.sentences for run in consecutive_runs(i for i in sentence if competes(i))]
    return [part for run in runs for part in _split_list(answer, run)]


def _split_list(answer: Text, run: range) -> Iterator[range]:
    """Yield the parts of a run between commas, semicolons, slashes and line breaks; each number is a part."""
    start = run.start
    for i in run:
        are_numbers = all(word.lexeme.is_number for word in answer.words[i : i + 2])
        if i + 1 == run.stop or are_numbers or _SEPARATOR.fullmatch(answer.after(i)):
            yield range(start, i + 1)
            start = i + 1


def hedges(
    answer: Text, given: range, others: Sequence[range], question: frozenset[Key], passage: Text | None
) -> list[range]:
    """Return the competing answers among `others` that are offered in addition to the given one.

    They are listed with it, as in "24, 308 or 136", unless the passage does so ("Denver, Colorado"); or they have a
    sentence of their own that only repeats the question, as in "It was 24. It was 308."
    """
    listed = [given]
    for direction in (others, others[::-1]):
        for run in direction:
            if run not in listed and any(_are_listed(answer, run, other) for other in listed):
                listed.append(run)
    offered = [run for run in listed[1:] if passage is None or not _in_passage(passage, answer, given, run)]
    alone = [run for run in others if run not in listed and _is_alone(answer, run, given, question)]
    return sorted([*offered, *alone], key=lambda run: run.start)


def listed_items(answer: Text) -> list[range]:
    """Return the items of an enumeration: at least MIN_ITEMS short ones in a row, in one sentence or one sentence each.

    "Moe, Hovden, Fedje, Bergen" and "It is Moe. It is Hovden. It is Fedje. It is Bergen." have four.
    """
    items: list[range] = []
    start = 0
    for i in range(len(answer.words)):
        is_last = i + 1 == len(answer.words)
        if is_last or answer.words[i + 1].starts_sentence or _SEPARATOR.fullmatch(answer.after(i)):
            items.append(range(start, i + 1))
            start = i + 1
    short = [len(item) <= _MAX_ITEM for item in items]
    runs = consecutive_runs(i for i, is_short in enumerate(short) if is_short)
    return [items[i] for run in runs if len(run) >= MIN_ITEMS for i in run]


def _is_alone(answer: Text, run: range, given: range, question: frozenset[Key]) -> bool:
    sentence = answer.sentences[answer.words[run.start].sentence]
    others = [i for i in sentence if i not in run and answer.words[i].is_content]
    return given.start not in sentence and all(answer.keys[i] in question for i in others)


def _are_listed(answer: Text, one: range, other: range) -> bool:
    first, second = sorted((one, other), key=lambda run: run.start)
    if first.stop > second.start:
        return False
    gap = answer.string[answer.words[first.stop - 1].end : answer.words[second.start].start]
    are_numbers = answer.words[first.stop - 1].lexeme.is_number and answer.words[second.start].lexeme.is_number
    return _SEPARATOR.fullmatch(gap) is not None or (are_numbers and not gap.strip())


def _in_passage(passage: Text, answer: Text, one: range, other: range) -> bool:
    """Whether the passage has the words from one to the other in a row."""
    both = answer.keys[min(one.start, other.start) : max(one.stop, other.stop)]
    return any(passage.keys[i : i + len(both)] == both for i in range(len(passage.keys) - len(both) + 1))


def common_in_order(keys: Sequence[Key], others: Sequence[Key]) -> int:
    """Return the length of the longest common subsequence."""
    lengths = [0] * (len(others) + 1)
    for key in keys:
        diagonal = 0
        for j, other in enumerate(others, 1):
            diagonal, lengths[j] = lengths[j], diagonal + 1 if key == other else max(lengths[j], lengths[j - 1])
    return lengths[-1]


def _groups(answer: Text, indices: Sequence[int]) -> list[list[int]]:
    """Group indices with at most one content word between neighbours."""
    groups: list[list[int]] = []
    for i in indices:
        between = range(groups[-1][-1] + 1, i) if groups else range(0)
        if groups and sum(answer.words[j].is_content for j in between) <= _MAX_GAP:
            groups[-1].append(i)
        else:
            groups.append([i])
    return groups


def _is_calendar(word: Word) -> bool:
    return word.text.lower() in CALENDAR_WORDS and word.text[0].isupper()
