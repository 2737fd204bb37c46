"""A programmatic critic for question answering: is the answer right, is it in the passage, and does it stop there?

The critic needs no model. The passage is `meta["document"]` or `meta["passage"]`, the question `meta["question"]` or
what the prompt has besides the passage, the right answers are the reference, one or several; passage or reference may
be missing, not both. Its score is the sum of what it marks, as that of the grounding critic, and as there the rules are
made such that only a good answer has a high one.

Praise
    right       +1    The first place that gives a right answer of up to 12 words; less for a part of it. Numbers must
                      all be there.
    told        +0.5  A key fact of a long right answer, once, as in the grounding critic.
    on point    +0.3  Without a right answer to go by: a key fact of the two sentences of the passage that the question
                      is closest to, once.

Blame
    wrong       -0.8  No right answer is given, but another: the first of its kind (a number or date, a name), else the
                      first words that are not in the question.
    hedged      -0.6  A right answer lined up with others, as in "24, 308 or 136"; three at most.
    refusal     -0.5  "I don't know", "The passage does not say".
    number -0.8, name -0.7, word -0.25  That neither passage nor question nor a right answer has.
    sentence    -0.8  Instead of its words, a sentence with at least four content words, more than half unsupported.
    irrelevant  -0.4  A sentence after the first that shares less than 30% of its content with a long right answer.
    filler, repeated, broken, unfinished  as in the grounding critic; an answer of a few words needs no full stop.
    copied      -0.5  More words than the length limit in the words and the order of the passage.
    padding     -0.05 a word, at most -0.8, marked where the answer should have ended: after 25 words, or one and a half
                      times as many as the longest right answer has; without one, 45% of the passage, 15 to 60 words.

Omissions, which the decision to stop pays for
    the answer  -1    No right answer of up to 12 words is given.
    a fact      -0.3  A key fact of a long right answer is not mentioned.
    an answer   -1    Nothing is said that is not in the question: silence must cost more than a wrong answer.

So a right answer in a few words wins; the whole passage holds it too, but pays for copying and padding, and still fares
better than a wrong answer, which is better than nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from text2grad.critics.gold import Gold, hedges, read_gold, rivals
from text2grad.critics.grounding import COVERAGE, COVERAGE_OF_SHORT_TEXT, length_limit, tell_facts, total
from text2grad.critics.prose import faults
from text2grad.critics.prose.copying import copied_runs
from text2grad.critics.prose.facts import Fact, key_facts
from text2grad.critics.prose.marks import Finding, gravest, place
from text2grad.critics.prose.source import Source
from text2grad.critics.prose.wording import Critique
from text2grad.critics.prose.words import Key, Text, names, read, runs
from text2grad.errors import UserError
from text2grad.schema import Example, Feedback, Omission, Range, Span

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

# What the critique says of the marks of a kind, in this order, and the reason each span carries.
REMARKS = {
    "right": ("It rightly answers", "the right answer"),
    "told": ("It rightly says", "a fact of the right answer"),
    "on point": ("It is to the point in", "what the passage says about the question"),
    "wrong": ("The answer is not", "another answer than the right one"),
    "hedged": ("It hedges with", "offered besides the right answer"),
    "refusal": ("It does not answer the question in", "no answer"),
    "number": ("The passage does not give the number", "number that is not in the passage"),
    "name": ("The passage does not name", "name that is not in the passage"),
    "sentence": ("The passage says nothing of the kind of", "sentence that the passage does not support"),
    "word": ("The passage does not support", "word that the passage does not support"),
    "irrelevant": ("It strays from the question in", "irrelevant to the question"),
    "filler": ("It talks about the text instead of answering in", "talk about the text"),
    "copied": ("It copies the passage instead of answering in", "copied from the passage"),
    "repeated": ("It repeats itself in", "said before"),
    "broken": ("The grammar breaks down in", "broken grammar"),
    "padding": ("It is too long; it should have ended before", "beyond the length of an answer"),
    "unfinished": ("It breaks off after", "unfinished sentence"),
}
_PRAISE = frozenset({"right", "told", "on point"})
_LONGEST_QUOTE = 80

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
    """A mark on words of the answer; `kind` is one of REMARKS."""

    kind: str
    words: range
    severity: float


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


class QACritic:
    """Judges answers by their passage and by the answers known to be right; see the module's docstring for the rules.

    max_words: the length limit of an answer, instead of one that goes by the right answers or the passage.
    """

    name = "qa"

    def __init__(self, max_words: int | None = None) -> None:
        if max_words is not None and max_words < 1:
            raise UserError(f"qa: max_words is {max_words}; give at least 1, or None for a limit by the right answer")
        self.max_words = max_words

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        """Feedback for each example; failed for one with neither a passage nor a right answer."""
        return [self._critique(example) for example in examples]

    def _critique(self, example: Example) -> Feedback:
        passage = example.meta.get("document") or example.meta.get("passage") or ""
        reference = [example.reference] if isinstance(example.reference, str) else example.reference or []
        golds = tuple(answer for answer in reference if read(answer).words)
        if not isinstance(passage, str) or not (read(passage).words or golds):
            return Feedback.failure(
                self.name,
                f'{example.id}: neither a passage nor a right answer; put them into meta["document"] and reference',
            )
        question = example.meta.get("question") or example.prompt_text.replace(passage, " ")
        brief = read_brief(str(question), passage, golds, self.max_words)
        answer = read(example.completion)
        notes, missing = judge(answer, brief)
        return _feedback(self.name, answer, notes, missing)


@lru_cache(maxsize=1024)
def read_brief(question: str, passage: str, golds: tuple[str, ...], max_words: int | None) -> Brief:
    """Question, passage and right answers, read once for many answers."""
    asked = read(question)
    source = Source(read(passage)) if passage.strip() else None
    texts = {gold: read(gold) for gold in golds}
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
        source=Source(read("\n\n".join([passage, question, *golds]))) if source else None,
        short=tuple(read_gold(gold) for gold, text in texts.items() if len(text.words) <= SHORT_GOLD),
        long=key_facts(long[0]) if long else (),
        told=_content(text for text in long),
        focus=_focus(asked, source.text) if source and not golds else (),
        limit=limit,
    )


def judge(answer: Text, brief: Brief) -> tuple[list[Note], list[tuple[str, float]]]:
    """The marks on an answer, and what it leaves out with its severity."""
    refusals = list(_refusals(answer))
    notes = refusals
    missing: list[tuple[str, float]] = []
    if not refusals and not _says_something(answer, brief.question, brief.short):
        missing.append(("an answer", SILENT))
    if brief.short:
        given = list(_short_answer(answer, brief, is_refused=bool(refusals)))
        notes = [*refusals, *given]
        if not any(note.kind == "right" for note in given):
            missing.append((brief.short[0].text, MISSING_ANSWER))
    elif brief.long or brief.focus:
        found, absent = _facts(answer, brief)
        notes = [*refusals, *found]
        missing += [(fact.text, MISSING_FACT) for fact in absent]
    notes += list(_irrelevant(answer, brief)) + list(_unsupported_sentences(answer, brief))
    return [*_disjoint(notes), *_other_faults(answer, brief, _members(note.words for note in notes))], missing


def _short_answer(answer: Text, brief: Brief, is_refused: bool) -> Iterator[Note]:
    """The right answer where it is first given best, and what hedges it; or what was said instead."""
    known = frozenset(word.lexeme.key for word in brief.question.words)
    proper = _proper(brief.passage.text) if brief.passage else frozenset()
    mentions = [(share, -words.start, words, gold) for gold in brief.short for words, share in gold.mentions(answer)]
    if mentions:
        share, _, words, gold = max(mentions, key=lambda mention: mention[:2])
        yield Note("right", words, round(RIGHT * share, 2))
        others = rivals(answer, gold, known, proper) if gold.kind != "phrase" else []
        for run in hedges(answer, words, others, brief.passage.text if brief.passage else None)[:MOST_HEDGES]:
            yield Note("hedged", run, HEDGED)
    elif not is_refused:
        gold = brief.short[0]
        instead = rivals(answer, gold, known, proper) or rivals(answer, gold._replace(kind="phrase"), known, proper)
        for run in instead[:1]:
            yield Note("wrong", run[: faults.REACH], WRONG)


def _facts(answer: Text, brief: Brief) -> tuple[list[Note], list[Fact]]:
    """Praise for the facts that are told; those of a right answer are missing where they are not mentioned."""
    beyond = set(range(brief.limit, len(answer.words)))
    told, missing = tell_facts(answer, brief.long or brief.focus, unheard=beyond, untold=set())
    kind, severity = ("told", TOLD) if brief.long else ("on point", ON_POINT)
    return [Note(kind, finding.words, severity) for finding in told], missing if brief.long else []


def _refusals(answer: Text) -> Iterator[Note]:
    for match in _REFUSAL.finditer(answer.string):
        words = [i for i, word in enumerate(answer.words) if match.start() <= word.start < match.end()]
        if words:
            yield Note("refusal", range(words[0], words[-1] + 1)[: faults.REACH], REFUSAL)
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


def _unsupported_sentences(answer: Text, brief: Brief) -> Iterator[Note]:
    for sentence in answer.sentences if brief.source else ():
        unsupported = [i for i in sentence if answer.words[i].is_content and not _is_supported(answer, i, brief.source)]
        content = sum(answer.words[i].is_content for i in sentence)
        if content >= LEAST_CONTENT and len(unsupported) > SUPPORTED_SHARE * content:
            yield Note("sentence", range(unsupported[0], sentence.stop)[: faults.REACH], SENTENCE)


def _is_supported(answer: Text, i: int, source: Source | None) -> bool:
    word = answer.words[i]
    if source is None:
        return True
    return source.supports_number(word, None) if word.lexeme.is_number else source.supports_word(word)


def _other_faults(answer: Text, brief: Brief, claimed: set[int]) -> list[Note]:
    """What can be wrong with any text, on words that are not marked yet and within the share that may be marked."""
    findings: list[Finding] = []
    if brief.source is not None:
        found_names = list(names(answer))
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
    return tuple(fact for fact in key_facts(read(text)) if not asked.issuperset(fact.keys))


def _content(texts: Iterable[Text]) -> frozenset[Key]:
    return frozenset(word.lexeme.key for text in texts for word in text.words if word.is_content)


def _proper(passage: Text) -> frozenset[Key]:
    return frozenset(passage.keys[i] for name in names(passage) for i in name)


def _disjoint(notes: Iterable[Note]) -> list[Note]:
    """Earlier notes come first; what is left of the others is their longest free run."""
    kept: list[Note] = []
    claimed: set[int] = set()
    for note in notes:
        words = _longest_free(note.words, claimed)
        if words:
            kept.append(note._replace(words=words))
            claimed |= set(words)
    return kept


def _longest_free(words: range, claimed: set[int]) -> range:
    return max(runs(i for i in words if i not in claimed), key=len, default=range(0))


def _members(ranges: Iterable[range]) -> set[int]:
    return {i for words in ranges for i in words}


class _Wording(Critique):
    def say(self, opening: str, items: Sequence[str]) -> list[Range]:
        """One sentence that quotes the items; where in the text it quotes each."""
        return self._say(opening, items)


def _feedback(name: str, answer: Text, notes: Sequence[Note], missing: Sequence[tuple[str, float]]) -> Feedback:
    wording = _Wording()
    spans = []
    for kind, (opening, reason) in REMARKS.items():
        alike = [note for note in notes if note.kind == kind]
        places = [(answer.words[note.words[0]].start, answer.words[note.words[-1]].end) for note in alike]
        quotes = [_shorten(answer.string[start:end]) for start, end in places]
        for note, (start, end), phrase in zip(alike, places, wording.say(opening, quotes), strict=True):
            spans.append(
                Span(
                    start=start,
                    end=end,
                    label="good" if kind in _PRAISE else "poor",
                    severity=note.severity,
                    phrase=phrase,
                    reason=reason,
                    critic=name,
                )
            )
    phrases = wording.say("It should have said", [_shorten(text) for text, _ in missing])
    omissions = [
        Omission(text=text, severity=severity, phrase=phrase)
        for (text, severity), phrase in zip(missing, phrases, strict=True)
    ]
    spans.sort(key=lambda span: span.start)
    return Feedback(critique=wording.text, spans=spans, omissions=omissions, score=total(spans, omissions), critic=name)


def _shorten(quote: str) -> str:
    return quote if len(quote) <= _LONGEST_QUOTE else f"{quote[: _LONGEST_QUOTE - 1]}…"
