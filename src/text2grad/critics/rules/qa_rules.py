"""The rules of the question answering critic, as `qa` lists them: from an answer to notes and omissions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from text2grad.critics.rules import faults
from text2grad.critics.rules.copying import copied_runs
from text2grad.critics.rules.facts import Fact, key_facts
from text2grad.critics.rules.gold import Gold, hedges, read_gold, rivals
from text2grad.critics.rules.grounding import COVERAGE, COVERAGE_OF_SHORT_TEXT, length_limit, tell_facts
from text2grad.critics.rules.marks import Finding, gravest, place
from text2grad.critics.rules.source import Source
from text2grad.text.words import Key, Text, consecutive_runs, find_names, parse_text

RIGHT, TOLD, ON_POINT = 1.0, 0.5, 0.3
WRONG, HEDGED, REFUSAL, SENTENCE, IRRELEVANT = 0.8, 0.6, 0.5, 0.8, 0.4
COPIED, PADDING_PER_WORD, PADDING_MOST = 0.5, 0.05, 0.8
MISSING_ANSWER, MISSING_FACT, SILENT = 1.0, 0.3, 1.0

SHORT_GOLD = 12
LEAST_LIMIT, LIMIT_PER_GOLD_WORD = 25, 1.5
MOST_HEDGES = 3
RELEVANT_SHARE = 0.3
SUPPORTED_SHARE, LEAST_CONTENT = 0.5, 4
FEW_WORDS = 8
FOCUS = 2

_REFUSAL = re.compile(
    r"""
    \b(?:i|we)\s(?:(?:do\snot|don['’]t|cannot|can['’]t|could\snot|couldn['’]t|am\snot\sable\sto|am\sunable\sto|am\snot\ssure
      |have\sno)\b)[^.!?\n]*
    |\b(?:the|this)\s(?:passage|text|context|article|document|source)\s(?:does\snot|doesn['’]t|did\snot|gives\sno|has\sno)\b
      [^.!?\n]*
    |\b(?:there\sis\sno\sinformation|no\sinformation|it\sis\s(?:not\s(?:stated|mentioned|clear|known|specified)|unclear
      |unknown)|not\s(?:enough\sinformation|stated|mentioned))\b[^.!?\n]*
    |\Aunknown\b
    """,
    re.VERBOSE | re.IGNORECASE,
)


class Note(NamedTuple):
    """What is to be said about words of the answer; `kind` is one of those that `qa` lists.

    Its mark covers `reach` of the words.
    """

    kind: str
    words: range
    severity: float
    reach: int = faults.REACH


class Brief(NamedTuple):
    """What an answer is judged by.

    source: what supports a statement: passage, question and right answers; without a passage, None.
    short: right answers of a few words. long: facts of a right answer of more words. told: what such answers speak of.
    focus: facts of the passage that the question is closest to, where there is no right answer.
    """

    question: Text
    passage: Source | None
    source: Source | None
    short: tuple[Gold, ...]
    long: tuple[Fact, ...]
    told: frozenset[Key]
    focus: tuple[Fact, ...]
    limit: int


@lru_cache(maxsize=1024)
def read_brief(question: str, passage: str, golds: tuple[str, ...], max_words: int | None) -> Brief:
    """Question, passage and right answers, read once for many answers."""
    asked = parse_text(question)
    source = Source(parse_text(passage)) if passage.strip() else None
    texts = {gold: parse_text(gold) for gold in golds}
    long = [text for text in texts.values() if len(text.words) > SHORT_GOLD]
    longest = max((len(text.words) for text in texts.values()), default=0)
    if max_words is not None:
        limit = max_words
    elif golds or source is None:
        limit = max(LEAST_LIMIT, round(LIMIT_PER_GOLD_WORD * longest))
    else:
        limit = length_limit(source)
    return Brief(
        question=asked,
        passage=source,
        source=Source(parse_text("\n\n".join([passage, question, *golds]))) if source else None,
        short=tuple(read_gold(gold) for gold, text in texts.items() if len(text.words) <= SHORT_GOLD),
        long=key_facts(long[0]) if long else (),
        told=_content(text for text in long),
        focus=_focus(asked, source.text) if source and not golds else (),
        limit=limit,
    )


def judge(answer: Text, brief: Brief) -> tuple[list[Note], list[tuple[str, float]]]:
    """The marks on an answer, and what it leaves out with its severity."""
    refusals = list(_refusals(answer))
    notes = [*refusals]
    missing: list[tuple[str, float]] = []
    if not refusals and not _says_something(answer, brief.question, brief.short):
        missing.append(("an answer", SILENT))
    if brief.short:
        given = list(_short_answer(answer, brief, is_refused=bool(refusals)))
        notes += given
        if not any(note.kind == "right" for note in given):
            missing.append((brief.short[0].text, MISSING_ANSWER))
    elif brief.long or brief.focus:
        found, absent = _facts(answer, brief)
        notes += found
        missing += [(fact.text, MISSING_FACT) for fact in absent]
    notes += _unsupported_sentences(answer, brief, besides=_members(note.words for note in notes))
    notes += _irrelevant(answer, brief)
    return [*_disjoint(notes), *_other_faults(answer, brief, _members(note.words for note in notes))], missing


def _short_answer(answer: Text, brief: Brief, is_refused: bool) -> Iterator[Note]:
    """The right answer where it is first given best, and what hedges it; or what was said instead."""
    known = frozenset(word.lexeme.key for word in brief.question.words)
    proper = _proper(brief.passage.text) if brief.passage else frozenset()
    mentions = [(share, -words.start, words, gold) for gold in brief.short for words, share in gold.mentions(answer)]
    if mentions:
        share, _, words, gold = max(mentions, key=lambda mention: mention[:2])
        yield Note("right", words, round(RIGHT * share, 2), reach=len(words))
        others = rivals(answer, gold, known, proper) if gold.kind != "phrase" else []
        for run in hedges(answer, words, others, known, brief.passage.text if brief.passage else None)[:MOST_HEDGES]:
            yield Note("hedged", run, HEDGED)
    elif not is_refused:
        gold = brief.short[0]
        instead = rivals(answer, gold, known, proper) or rivals(answer, gold._replace(kind="phrase"), known, proper)
        for run in instead[:1]:
            yield Note("wrong", run, WRONG)


def _facts(answer: Text, brief: Brief) -> tuple[list[Note], list[Fact]]:
    """Praise for the facts that are told; those of a right answer are missing where they are not mentioned."""
    beyond = set(range(brief.limit, len(answer.words)))
    told, missing = tell_facts(answer, brief.long or brief.focus, unheard=beyond, untold=set())
    kind, severity = ("told", TOLD) if brief.long else ("on point", ON_POINT)
    return [Note(kind, finding.words, severity, finding.reach) for finding in told], missing if brief.long else []


def _refusals(answer: Text) -> Iterator[Note]:
    for match in _REFUSAL.finditer(answer.string):
        words = [i for i, word in enumerate(answer.words) if match.start() <= word.start < match.end()]
        if words:
            yield Note("refusal", range(words[0], words[-1] + 1), REFUSAL)
            return


def _says_something(answer: Text, question: Text, golds: Sequence[Gold]) -> bool:
    asked = {word.lexeme.key for word in question.words}
    wanted = {key for gold in golds for key in gold.keys}
    return any(word.lexeme.key in wanted or (word.is_content and word.lexeme.key not in asked) for word in answer.words)


def _irrelevant(answer: Text, brief: Brief) -> Iterator[Note]:
    """Sentences that have next to nothing of a long right answer. The first one may lead up to it."""
    for sentence in answer.sentences[1:] if brief.told else ():
        content = [i for i in sentence if answer.words[i].is_content]
        shared = sum(answer.keys[i] in brief.told for i in content)
        if len(content) >= LEAST_CONTENT and shared < RELEVANT_SHARE * len(content):
            yield Note("irrelevant", sentence[: faults.REACH], IRRELEVANT)


def _unsupported_sentences(answer: Text, brief: Brief, besides: set[int]) -> Iterator[Note]:
    """Sentences that are mostly unsupported, with nothing in them that was noted already."""
    for sentence in answer.sentences if brief.source else ():
        unsupported = [i for i in sentence if answer.words[i].is_content and not _is_supported(answer, i, brief.source)]
        content = sum(answer.words[i].is_content for i in sentence)
        is_unsupported = content >= LEAST_CONTENT and len(unsupported) > SUPPORTED_SHARE * content
        if is_unsupported and besides.isdisjoint(sentence):
            yield Note("sentence", sentence, SENTENCE)


def _is_supported(answer: Text, i: int, source: Source | None) -> bool:
    word = answer.words[i]
    if source is None:
        return True
    return source.supports_number(word, None) if word.lexeme.is_number else source.supports_word(word)


def _other_faults(answer: Text, brief: Brief, claimed: set[int]) -> list[Note]:
    """What can be wrong with any text, on words that are not marked yet and within the share that may be marked."""
    findings: list[Finding] = []
    if brief.source is not None:
        found_names = list(find_names(answer))
        findings += faults.unsupported_numbers(answer, brief.source)
        findings += faults.unsupported_names(answer, found_names, brief.source)
        findings += faults.fillers(answer, brief.source)
        findings += faults.repetitions(answer)
        findings += faults.unsupported_words(answer, found_names, brief.source)
    else:
        findings += faults.repetitions(answer)
    findings += faults.broken_grammar(answer)
    findings += _copied(answer, brief)
    findings += _padding(answer, brief.limit)
    if len(answer.words) > FEW_WORDS:
        findings += faults.unfinished(answer)
    free = [finding._replace(words=_longest_free(finding.words, claimed)) for finding in findings]
    budget = max(COVERAGE_OF_SHORT_TEXT, int(COVERAGE * len(answer.string)))
    starts = {word.start: i for i, word in enumerate(answer.words)}
    ends = {word.end: i for i, word in enumerate(answer.words)}
    return [
        Note(mark.kind, range(starts[mark.start], ends[mark.end] + 1), mark.severity)
        for mark in gravest(place(free, answer), budget)
    ]


def _copied(answer: Text, brief: Brief) -> Iterator[Finding]:
    copied = copied_runs(answer, brief.passage) if brief.passage else []
    if sum(map(len, copied)) > brief.limit:
        longest = max(copied, key=len)
        yield Finding("copied", longest[len(longest) // 2 :], COPIED, faults.REACH)


def _padding(answer: Text, limit: int) -> Iterator[Finding]:
    """One mark, where the answer should have ended: each further word only makes it graver."""
    beyond = len(answer.words) - limit
    if beyond > 0:
        severity = min(PADDING_MOST, PADDING_PER_WORD * beyond)
        yield Finding("padding", range(limit, len(answer.words)), severity, faults.REACH)


def _focus(question: Text, passage: Text) -> tuple[Fact, ...]:
    """The key facts of the sentences that share most with the question, but for what the question says itself."""
    asked = _content([question])
    weight = {
        key: 1 / sum(key in passage.keys[s.start : s.stop] for s in passage.sentences)
        for key in asked & {*passage.keys}
    }
    overlap = [sum(weight.get(key, 0.0) for key in {*passage.keys[s.start : s.stop]}) for s in passage.sentences]
    closest = sorted(range(len(overlap)), key=lambda number: -overlap[number])[:FOCUS]
    text = " ".join(
        passage.string[passage.words[s.start].start : passage.words[s.stop - 1].end] + "."
        for s in (passage.sentences[number] for number in sorted(closest) if overlap[number] > 0)
    )
    return tuple(fact for fact in key_facts(parse_text(text)) if not asked.issuperset(fact.keys))


def _content(texts: Iterable[Text]) -> frozenset[Key]:
    return frozenset(word.lexeme.key for text in texts for word in text.words if word.is_content)


def _proper(passage: Text) -> frozenset[Key]:
    return frozenset(passage.keys[i] for name in find_names(passage) for i in name)


def _disjoint(notes: Iterable[Note]) -> list[Note]:
    """Marks on words that no earlier note is about: the longest free run of each, as far as it reaches."""
    kept: list[Note] = []
    claimed: set[int] = set()
    for note in notes:
        words = _longest_free(note.words, claimed)
        if words:
            kept.append(note._replace(words=words[: note.reach]))
            claimed |= set(note.words)
    return kept


def _longest_free(words: range, claimed: set[int]) -> range:
    return max(consecutive_runs(i for i in words if i not in claimed), key=len, default=range(0))


def _members(ranges: Iterable[range]) -> set[int]:
    return {i for words in ranges for i in words}
