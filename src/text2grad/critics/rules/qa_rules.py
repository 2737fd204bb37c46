"""The rules of the question answering critic, documented in `qa`: from an answer to findings and omissions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from text2grad.critics.rules import faults
from text2grad.critics.rules.copying import copied_runs
from text2grad.critics.rules.facts import Fact, key_facts, match_facts
from text2grad.critics.rules.findings import (
    MAX_MARKED_WORDS,
    Finding,
    PlacedFinding,
    longest_free_run,
    place_findings,
    select_most_severe,
    word_indices,
)
from text2grad.critics.rules.gold import Gold, common_in_order, competing_answers, hedges, listed_items, parse_gold
from text2grad.critics.rules.grounding import length_limit, max_coverage
from text2grad.critics.rules.qa_score import Qualities, answer_score
from text2grad.critics.rules.source import Source
from text2grad.text.words import Key, Text, Word, parse_text

CORRECT, FACT, RELEVANT = 1.0, 0.5, 0.3
WRONG, HEDGED, REFUSAL, SENTENCE, IRRELEVANT = 0.8, 0.6, 0.5, 0.8, 0.4
COPIED, PADDING_PER_WORD, PADDING_MAX = 0.5, 0.05, 0.8
MISSING_ANSWER, MISSING_FACT, EMPTY = 1.0, 0.3, 1.0

MAX_SHORT_GOLD = 12
MIN_LIMIT, LIMIT_PER_GOLD_WORD = 25, 1.5
MAX_HEDGES = 3
COPIED_WEIGHT = 0.25
RELEVANT_SHARE = 0.3
SUPPORTED_SHARE, MIN_CONTENT = 0.5, 4
FEW_WORDS = 8
NUM_FOCUS_SENTENCES = 2
PARTIAL = 0.3  # of a share of the gold answer's words that is too small to be an answer
WRONG_KIND = 0.3  # of an attempt
ALLOWANCE = 4  # content words that an answer may have beside those of question and gold answer
ECHO_SHARE = 0.6
FAULTS = frozenset({"number", "name", "word", "sentence", "irrelevant", "filler", "repeated", "broken", "unfinished"})

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


class AnswerCriteria(NamedTuple):
    """What an answer is compared with.

    source: passage, question and gold answers, which support statements; None without a passage.
    short: gold answers of a few words. long: key facts of the first longer one, long_order its content in order.
    long_keys: content of all longer ones.
    focus: key facts of the sentences of the passage that are closest to the question, where there is no gold answer.
    lists: whether a longer gold answer has an enumeration.
    asked: content of question and instruction; an answer that says nothing else is none.
    """

    question: Text
    passage: Source | None
    source: Source | None
    short: tuple[Gold, ...]
    long: tuple[Fact, ...]
    long_order: tuple[Key, ...]
    long_keys: frozenset[Key]
    focus: tuple[Fact, ...]
    limit: int
    lists: bool
    asked: frozenset[Key]


@lru_cache(maxsize=1024)
def build_criteria(
    question: str, passage: str, golds: tuple[str, ...], max_words: int | None, instruction: str = ""
) -> AnswerCriteria:
    """Parse question, passage and gold answers, once for many answers. instruction: what else the prompt says."""
    question_text = parse_text(question)
    source = Source(parse_text(passage)) if passage.strip() else None
    texts = {gold: parse_text(gold) for gold in golds}
    long = [text for text in texts.values() if len(text.words) > MAX_SHORT_GOLD]
    longest = max((len(text.words) for text in texts.values()), default=0)
    if max_words is not None:
        limit = max_words
    elif golds or source is None:
        limit = max(MIN_LIMIT, round(LIMIT_PER_GOLD_WORD * longest))
    else:
        limit = length_limit(source)
    return AnswerCriteria(
        question=question_text,
        passage=source,
        source=Source(parse_text("\n\n".join([passage, question, *golds]))) if source else None,
        short=tuple(parse_gold(gold) for gold, text in texts.items() if len(text.words) <= MAX_SHORT_GOLD),
        long=key_facts(long[0]) if long else (),
        long_order=_content_in_order(long[0]) if long else (),
        long_keys=_content(long),
        focus=_focus(question_text, source.text) if source and not golds else (),
        limit=limit,
        lists=any(listed_items(text) for text in long),
        asked=_content([question_text, parse_text(instruction)]),
    )


class Evaluation(NamedTuple):
    """What is said about an answer: findings, what is missing with its severity, and the score."""

    findings: list[PlacedFinding]
    missing: list[tuple[str, float]]
    score: float


class _Comparison(NamedTuple):
    """An answer compared with gold answers, or with the passage: findings, what is missing, and parts of the score.

    given: the words that give the answer. used: the keys of what it rightly says. allowance: other words for free.
    """

    findings: list[Finding]
    missing: list[tuple[str, float]]
    attempt: float
    correct: float
    hedges: int
    given: range
    used: frozenset[Key]
    allowance: int


def evaluate_answer(answer: Text, criteria: AnswerCriteria) -> Evaluation:
    """Compare an answer with question, passage and gold answers."""
    refusals = list(_refusals(answer))
    is_answer = not refusals and _has_content(answer, criteria)
    missing = [] if refusals or is_answer else [("an answer", EMPTY)]
    compared = (
        _compare_short(answer, criteria, is_refused=bool(refusals))
        if criteria.short
        else _compare_facts(answer, criteria)
    )
    findings = [*refusals, *compared.findings]
    findings += _unsupported_sentences(answer, criteria, excluded=_words_of(findings))
    findings += _irrelevant(answer, criteria)
    others = _other_faults(answer, criteria, _words_of(findings))
    too_long = [*_copied(answer, criteria), *_padding(answer, criteria.limit)]
    score = answer_score(
        Qualities(
            attempt=compared.attempt if is_answer else 0.0,
            correct=compared.correct if is_answer else 0.0,
            excess=_excess(answer, criteria, compared),
            hedges=compared.hedges,
            faults=sum(f.severity for f in [*findings, *others] if f.kind in FAULTS),
        )
    )
    placed = [
        *place_findings(findings, answer, only_marked=False),
        *_place_others([*others, *too_long], answer, _words_of(findings)),
    ]
    return Evaluation(placed, [*missing, *compared.missing], score)


def _compare_short(answer: Text, criteria: AnswerCriteria, is_refused: bool) -> _Comparison:
    """Find the best and first place that gives a gold answer, and its hedges; or the answer given instead."""
    question = frozenset(criteria.question.keys)
    passage = criteria.passage.text if criteria.passage else None
    names = frozenset(passage.keys[i] for name in passage.names for i in name) if passage else frozenset()
    mentions = [
        (share, -words.start, words, gold)
        for gold in criteria.short
        for words, share in gold.mentions(answer)
        if question.issuperset(gold.keys) or not question.issuperset({*gold.keys}.intersection(_keys(answer, words)))
    ]
    if mentions:
        share, _, words, gold = max(mentions, key=lambda mention: mention[:2])
        others = competing_answers(answer, gold, question, names) if gold.kind != "phrase" else []
        listed = [item for item in listed_items(answer) if {*item}.isdisjoint(words)]
        offered = max(hedges(answer, words, others, question, passage), listed, key=len)
        findings = [
            Finding("correct", words, round(CORRECT * share, 2), max_words=len(words)),
            *(Finding("hedged", run, HEDGED) for run in offered[:MAX_HEDGES]),
        ]
        # more than half of a phrase, or a surname, is nearly right
        return _Comparison(findings, [], 1.0, (1 + share) / 2, len(offered), words, frozenset(gold.keys), ALLOWANCE)
    gold = criteria.short[0]
    overlap = max(_overlap(answer, other, question) for other in criteria.short)
    of_kind = competing_answers(answer, gold, question, names)
    others = competing_answers(answer, gold._replace(kind="phrase"), question, names)
    instead = of_kind or others
    # of several words that may be meant as the answer, which one is wrong is not certain
    named = [run for run in others if any(answer.words[i].text[0].isupper() for i in run)]
    is_only = len(of_kind) == 1 and (gold.kind != "name" or len(named) == 1)
    return _Comparison(
        findings=[Finding("wrong", instead[0], WRONG, replacement=gold.text if is_only else None)]
        if instead and not is_refused
        else [],
        missing=[(gold.text, MISSING_ANSWER)],
        # a number or name shows by itself what it is an answer to, a phrase by taking up the question
        attempt=1.0
        if overlap or (of_kind and (gold.kind != "phrase" or _takes_up(answer, criteria.question)))
        else WRONG_KIND,
        correct=PARTIAL * overlap,
        hedges=len(listed_items(answer)),
        given=instead[0] if instead else range(0),
        used=frozenset(),
        allowance=ALLOWANCE,
    )


def _overlap(answer: Text, gold: Gold, question: frozenset[Key]) -> float:
    """Return the share of a gold answer's words in the answer that are not in the question; 0 for numbers."""
    keys = {*gold.keys} - question
    return len(keys & {*answer.keys}) / len({*gold.keys}) if gold.kind != "number" else 0.0


def _takes_up(answer: Text, question: Text) -> bool:
    """Whether the answer has a content word of the question."""
    return not _content([answer]).isdisjoint(_content([question]))


def _compare_facts(answer: Text, criteria: AnswerCriteria) -> _Comparison:
    """Find the facts of a long gold answer, or of the sentences of the passage that are closest to the question."""
    facts = criteria.long or criteria.focus
    stated, absent = _facts(answer, criteria)
    enough = len(facts) if criteria.long else (len(facts) + 1) // 2  # of two sentences, one may be enough
    correct = min(1.0, len(stated) / enough) if enough else 0.5
    if criteria.long:  # a few words of each fact are not yet the answer
        correct *= common_in_order(criteria.long_order, _content_in_order(answer)) / len(criteria.long_order)
    used = criteria.long_keys or frozenset(key for fact in criteria.focus for key in fact.keys)
    return _Comparison(
        findings=stated,
        missing=[(fact.text, MISSING_FACT) for fact in absent],
        attempt=1.0 if len(answer.words) >= FEW_WORDS and _takes_up(answer, criteria.question) else WRONG_KIND,
        correct=correct,
        hedges=len(listed_items(answer)) if not criteria.lists else 0,
        given=range(len(answer.words)),
        used=used,
        allowance=max(ALLOWANCE, len(used) // 2 if criteria.long else criteria.limit // 3),
    )


def _excess(answer: Text, criteria: AnswerCriteria, compared: _Comparison) -> float:
    """Return the number of words that an answer does not need.

    Content words that are neither of the question nor of the gold answer count beyond the allowance; those in another
    sentence than the answer itself count twice, repeated ones always, and copied ones half as much again.
    """
    question, seen = {*criteria.question.keys}, set[Key]()
    sentences = {answer.words[i].sentence for i in compared.given}
    new = beside = 0
    for word, key in zip(answer.words, answer.keys, strict=True):
        if word.is_content and key in seen:
            beside += not (criteria.long and key in compared.used)  # a long answer may come back to its subject
        elif word.is_content and key not in question and key not in compared.used:
            new += 1
            beside += word.sentence not in sentences
        seen.add(key)
    copied = copied_runs(answer, criteria.passage) if criteria.passage else []
    beyond = max(0, len(answer.words) - criteria.limit)
    return max(0, new - compared.allowance) + beside + beyond + COPIED_WEIGHT * sum(map(len, copied))


def _facts(answer: Text, criteria: AnswerCriteria) -> tuple[list[Finding], list[Fact]]:
    """Return praise for the stated facts, and the facts of a gold answer that are not mentioned."""
    beyond = set(range(criteria.limit, len(answer.words)))
    stated, missing = match_facts(answer, criteria.long or criteria.focus, ignored=beyond, not_stating=set())
    kind, severity = ("fact", FACT) if criteria.long else ("relevant", RELEVANT)
    return [Finding(kind, words, severity, len(words)) for words in stated], missing if criteria.long else []


def _refusals(answer: Text) -> Iterator[Finding]:
    for match in _REFUSAL.finditer(answer.string):
        words = [i for i, word in enumerate(answer.words) if match.start() <= word.start < match.end()]
        if words:
            yield Finding("refusal", range(words[0], words[-1] + 1), REFUSAL)
            return


def _has_content(answer: Text, criteria: AnswerCriteria) -> bool:
    """Whether the answer has content that was not asked, or a word of a gold answer without an echo of the question."""
    said = _content([answer])
    if not said <= criteria.asked:
        return True
    is_echo = len(said) > ECHO_SHARE * len(_content([criteria.question]))
    return not is_echo and any(key in answer.keys for gold in criteria.short for key in gold.keys)


def _irrelevant(answer: Text, criteria: AnswerCriteria) -> Iterator[Finding]:
    """Yield sentences with next to nothing of a long gold answer; the first one may be an introduction."""
    for sentence in answer.sentences[1:] if criteria.long_keys else ():
        content = [i for i in sentence if answer.words[i].is_content]
        shared = sum(answer.keys[i] in criteria.long_keys for i in content)
        if len(content) >= MIN_CONTENT and shared < RELEVANT_SHARE * len(content):
            yield Finding("irrelevant", sentence[:MAX_MARKED_WORDS], IRRELEVANT)


def _unsupported_sentences(answer: Text, criteria: AnswerCriteria, excluded: set[int]) -> Iterator[Finding]:
    """Yield mostly unsupported sentences without any of the excluded words."""
    if criteria.source is None:
        return
    for sentence in answer.sentences:
        content = [answer.words[i] for i in sentence if answer.words[i].is_content]
        unsupported = sum(not _is_supported(word, criteria.source) for word in content)
        is_unsupported = len(content) >= MIN_CONTENT and unsupported > SUPPORTED_SHARE * len(content)
        if is_unsupported and excluded.isdisjoint(sentence):
            yield Finding("sentence", sentence, SENTENCE)


def _is_supported(word: Word, source: Source) -> bool:
    return source.supports_number(word, None) if word.lexeme.is_number else source.supports_word(word)


def _other_faults(answer: Text, criteria: AnswerCriteria, taken: set[int]) -> list[Finding]:
    """Return the faults that any text can have, on words that are not taken."""
    findings: list[Finding] = []
    if criteria.source is not None:
        names = list(answer.names)
        findings += faults.unsupported_numbers(answer, criteria.source)
        findings += faults.unsupported_names(answer, names, criteria.source)
        findings += faults.fillers(answer, criteria.source)
        findings += faults.repetitions(answer)
        findings += faults.unsupported_words(answer, names, criteria.source)
    else:
        findings += faults.repetitions(answer)
    findings += faults.broken_grammar(answer)
    if len(answer.words) > FEW_WORDS:
        findings += faults.unfinished(answer)
    free = (finding._replace(words=longest_free_run(finding.words, taken)) for finding in findings)
    return [finding for finding in free if finding.words]


def _place_others(findings: Iterable[Finding], answer: Text, taken: set[int]) -> list[PlacedFinding]:
    """Place findings on words that are not taken, up to the maximum coverage."""
    free = [finding._replace(words=longest_free_run(finding.words, taken)) for finding in findings]
    return select_most_severe(place_findings(free, answer), max_coverage(answer))


def _copied(answer: Text, criteria: AnswerCriteria) -> Iterator[Finding]:
    copied = copied_runs(answer, criteria.passage) if criteria.passage else []
    if sum(map(len, copied)) > criteria.limit:
        longest = max(copied, key=len)
        yield Finding("copied", longest[len(longest) // 2 :], COPIED)


def _padding(answer: Text, limit: int) -> Iterator[Finding]:
    """Yield one finding at the length limit; each further word makes it more severe."""
    beyond = len(answer.words) - limit
    if beyond > 0:
        yield Finding("padding", range(limit, len(answer.words)), min(PADDING_MAX, PADDING_PER_WORD * beyond))


def _focus(question: Text, passage: Text) -> tuple[Fact, ...]:
    """Return the key facts of the sentences that share most with the question, without those of the question."""
    question_keys = _content([question])
    sentences = [{*passage.keys[sentence.start : sentence.stop]} for sentence in passage.sentences]
    weight = {key: 1 / sum(key in keys for keys in sentences) for key in question_keys & {*passage.keys}}
    overlap = [sum(weight.get(key, 0.0) for key in keys) for keys in sentences]
    closest = sorted(range(len(overlap)), key=lambda number: -overlap[number])[:NUM_FOCUS_SENTENCES]
    text = " ".join(
        passage.string[passage.words[s.start].start : passage.words[s.stop - 1].end] + "."
        for s in (passage.sentences[number] for number in sorted(closest) if overlap[number] > 0)
    )
    return tuple(fact for fact in key_facts(parse_text(text)) if not question_keys.issuperset(fact.keys))


def _content(texts: Iterable[Text]) -> frozenset[Key]:
    return frozenset(word.lexeme.key for text in texts for word in text.words if word.is_content)


def _content_in_order(text: Text) -> tuple[Key, ...]:
    """Return the content words by their first occurrence: repeating them must not put them in order."""
    return tuple(dict.fromkeys(word.lexeme.key for word in text.words if word.is_content))


def _keys(text: Text, words: range) -> tuple[Key, ...]:
    return text.keys[words.start : words.stop]


def _words_of(findings: Iterable[Finding]) -> set[int]:
    return word_indices(finding.words for finding in findings)
