"""tbd"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from text2grad.critics import faults
from text2grad.critics.marks import Mark, gravest, mark, without_overlap
from text2grad.critics.source import Fact, Source, read_source
from text2grad.critics.words import Text, read
from text2grad.critics.wording import Critique
from text2grad.schema import Example, Feedback, Omission, Span

TOLD, MISSING, TOO_SHORT = 0.5, 0.3, 1.0
FEWEST_WORDS = 8
COVERAGE, SHORT_TEXT = 0.4, 60
_COMPANIONS, _COMPANY = 2, 8


class GroundingCritic:
    name = "grounding"

    def __init__(self, max_words: int | None = None) -> None:
        self.max_words = max_words

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        return [self._critique(example) for example in examples]

    def _critique(self, example: Example) -> Feedback:
        document = example.meta.get("document") or example.prompt_text
        source = _read_cached(str(document))
        if not source.text.words:
            return Feedback.failure(self.name, f"example {example.id}: the source has no words to ground a summary in")
        summary = read(example.completion)
        marks, missing = judge(summary, source, self.max_words or word_budget(source))
        return self._write(summary, marks, missing)

    def _write(self, summary, marks, missing):
        critique = Critique()
        spans = [
            Span(start=m.start, end=m.end, label=m.label, severity=m.severity, phrase=p, reason=r, critic=self.name)
            for m, p, r in critique.comment(summary.string, marks)
        ]
        omissions = []
        if len(summary.words) < FEWEST_WORDS:
            omissions.append(Omission(text="a complete summary", severity=TOO_SHORT, phrase=critique.too_short()))
        phrases = critique.leave_out([f.text for f in missing])
        omissions += [Omission(text=f.text, severity=MISSING, phrase=p) for f, p in zip(missing, phrases, strict=True)]
        score = math.fsum(
            [s.severity if s.label == "good" else -s.severity for s in spans] + [-o.severity for o in omissions]
        )
        return Feedback(critique=critique.text, spans=spans, omissions=omissions, score=round(score, 6), critic=self.name)


@lru_cache(maxsize=4096)
def _read_cached(document: str) -> Source:
    return read_source(document)


def word_budget(source: Source) -> int:
    return min(60, max(15, round(0.45 * len(source.text.words))))


def judge(summary: Text, source: Source, budget: int) -> tuple[list[Mark], list[Fact]]:
    copied = faults.copied_runs(summary, source)
    listed = faults.lists(summary)
    told, missing = _tell(summary, source, copied, listed, budget)
    marks = without_overlap(
        [
            *faults.unsupported_numbers(summary, source),
            *faults.unsupported_names(summary, source),
            *faults.repetitions(summary),
            *faults.fillers(summary, source),
            *faults.unsupported_words(summary, source),
            *faults.listings(summary, listed),
            *faults.broken_grammar(summary),
            *faults.padding(summary, budget),
            *faults.copies(summary, copied),
            *told,
            *faults.layout(summary),
            *faults.unfinished(summary),
        ],
        summary,
    )
    return gravest(marks, max(SHORT_TEXT, int(COVERAGE * len(summary.string)))), missing


def _tell(summary, source, copied, listed, budget):
    told, missing = [], []
    keys = [w.lexeme.key for w in summary.words]
    in_copy = {i for r in copied for i in r}
    outside = {i for r in listed for i in r} | set(range(budget, len(keys)))
    for fact in source.facts:
        mentions = list(_mentions(summary, keys, fact))
        good = next((m for m in mentions if outside.isdisjoint(m) and in_copy.isdisjoint(m) and _connected(summary, keys, m, fact)), None)
        if good is not None:
            told.append(mark("told", summary, good, TOLD))
        elif not any(outside.isdisjoint(m) for m in mentions):
            missing.append(fact)
    return told, missing


def _mentions(summary, keys, fact):
    i = 0
    while i < len(keys):
        j = i
        hits = 0
        while j < len(keys) and summary.words[j].sentence == summary.words[i].sentence and keys[j] in fact.keys:
            j += 1
        if j > i:
            if 2 * len(set(keys[i:j])) >= len(fact.keys) or keys[j-1] == fact.keys[-1] and summary.words[j-1].text[0].isupper():
                yield range(i, j)
            i = j
        else:
            if fact.acronym and summary.words[i].text.lower().replace('.', '') == fact.acronym:
                yield range(i, i + 1)
            i += 1


def _connected(summary, keys, mention, fact):
    sentence = summary.sentences[summary.words[mention.start].sentence]
    window = range(max(sentence.start, mention.start - _COMPANY), min(sentence.stop, mention.stop + _COMPANY))
    found = {keys[i] for i in window} & fact.companions
    return len(found) >= min(_COMPANIONS, len(fact.companions))
