"""A programmatic critic for summaries: is what they say in the source, and do they say what matters there?

The critic needs no model and no reference. It writes a critique in plain sentences, and marks what the critique points
at. The source is `meta["document"]` of an example, or its prompt. Its score is the sum of what it marks: praise counts
its severity, blame and omissions count theirs negatively. That sum is also what an optimiser collects, so the rules
below are made such that only a good summary has a high one.

Praise
    told        +0.5  A key fact, once: one of up to six names, numbers and central words, at most two from one
                      sentence of the source. It counts where a sentence of the summary's own, within the length limit,
                      connects the fact with at least two of the words that stand with it in the source.

Blame
    number      -0.8  A number whose value the source does not have; after "about" and the like, none within 10% of it.
    name        -0.7  A name, or the part of one, that the source does not have; neither as demonym nor as acronym.
    word        -0.25 Any other content word that the source does not have in any form. Very general words are free.
    filler      -0.5  "Here is a summary", "The text discusses ...", where the source does not talk so.
    copied      -0.6 to -1  Twelve words, or nearly all of a sentence, in the words and the order of the source.
    repeated    -0.3 to -1  Four words, two of them content, that stood there before; a sentence of which four fifths
                      of the content were said before; a word doubled.
    listed      -0.3 to -1  What is no sentence: under four words, hardly any function words, an enumeration, no verb.
    broken      -0.3  "the of", "a was", "of and", "the.": the grammar of a shuffled bag of words.
    padding     -0.05 a word  What comes after the length limit: 45% of the source, at least 15, at most 60 words.
    layout      -0.2  Line breaks and list marks.
    unfinished  -0.3  No full stop at the end.

Omissions, which the decision to stop pays for
    a fact      -0.3  A key fact that no sentence within the length limit mentions. Being copied, it is not missing.
    a statement -1    Fewer than eight words: silence must cost more than a clumsy attempt.

So a shorter answer earns less praise and leaves out more; a longer one pays for padding and repetition, and wins
nothing back since every fact is praised once; a copied sentence pays as much as the omission of the facts in it would
cost, and earns no praise; a list of key words is no sentence and tells nothing. Marks never overlap, long faults are
marked over six words at most, and marks cover at most 40% of a text (60 characters of a short one), gravest first:
labels all over a text teach nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from text2grad.critics.rules import faults
from text2grad.critics.rules.copying import copied_runs
from text2grad.critics.rules.facts import Fact
from text2grad.critics.rules.marks import Finding, Mark, gravest, place
from text2grad.critics.rules.source import Source
from text2grad.critics.rules.wording import REMARKS, Critique
from text2grad.errors import UserError
from text2grad.schema import Example, Feedback, Omission, Span
from text2grad.text.words import Text, find_names, parse_text

TOLD, MISSING, TOO_SHORT = 0.5, 0.3, 1.0
SHORTEST_SUMMARY = 8
LENGTH_SHARE, LEAST_LIMIT, MOST_LIMIT = 0.45, 15, 60
COVERAGE, COVERAGE_OF_SHORT_TEXT = 0.4, 60


class GroundingCritic:
    """Judges summaries by their source; see the module's docstring for the rules.

    max_words: the length limit of a summary, instead of a share of its source.
    """

    name = "grounding"

    def __init__(self, max_words: int | None = None) -> None:
        if max_words is not None and max_words < 1:
            raise UserError(f"grounding: max_words is {max_words}; give at least 1, or None for a share of the source")
        self.max_words = max_words

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        """Feedback for each example; failed for one whose source has no words."""
        return [self._critique(example) for example in examples]

    def _critique(self, example: Example) -> Feedback:
        document = example.meta.get("document", example.prompt_text)
        source = _read_source(document) if isinstance(document, str) else None
        if source is None or not source.text.words:
            return Feedback.failure(
                self.name,
                f'{example.id}: no source text; put it into the prompt or, as a string, into meta["document"]',
            )
        summary = parse_text(example.completion)
        marks, missing = judge(summary, source, self.max_words or length_limit(source))
        is_too_short = len(summary.words) < min(SHORTEST_SUMMARY, len(source.text.words))
        return _feedback(self.name, summary, marks, missing, is_too_short)


@lru_cache(maxsize=4096)
def _read_source(document: str) -> Source:
    return Source(parse_text(document))


def length_limit(source: Source) -> int:
    """How many words a summary of this source may have."""
    return min(MOST_LIMIT, max(LEAST_LIMIT, round(LENGTH_SHARE * len(source.text.words))))


def judge(summary: Text, source: Source, limit: int) -> tuple[list[Mark], list[Fact]]:
    """The marks on a summary, in reading order, and the facts that it leaves out."""
    found_names = list(find_names(summary))
    invented = list(faults.unsupported_names(summary, found_names, source))
    copied = copied_runs(summary, source)
    non_sentences = faults.non_sentences(summary)
    told, missing = tell_facts(
        summary,
        source.facts,
        unheard=_members([*non_sentences, range(limit, len(summary.words))]),
        untold=_members([*copied, *_spoilt(found_names, invented)]),
    )
    # in order of precedence: a word belongs to the first that claims it
    findings = [
        *faults.unsupported_numbers(summary, source),
        *invented,
        *faults.fillers(summary, source),
        *faults.repetitions(summary),
        *faults.broken_grammar(summary),
        *faults.unsupported_words(summary, found_names, source),
        *told,
        *faults.copies(copied),
        *faults.listings(non_sentences),
        *faults.padding(summary, limit),
        *faults.unfinished(summary),
    ]
    budget = max(COVERAGE_OF_SHORT_TEXT, int(COVERAGE * len(summary.string)))
    return gravest([*place(findings, summary), *faults.layout(summary)], budget), missing


def tell_facts(
    summary: Text, facts: Sequence[Fact], unheard: set[int], untold: set[int]
) -> tuple[list[Finding], list[Fact]]:
    """Praise for the first telling of each fact, and the facts that are missing.

    unheard: words that count for nothing, in no sentence or beyond the length limit.
    untold: words that mention a fact without telling it, copied or part of a wrong name.
    """
    told, missing = [], []
    for fact in facts:
        mentions = [mention for mention in fact.mentions(summary) if unheard.isdisjoint(mention)]
        tellings = [mention for mention in mentions if untold.isdisjoint(mention) and fact.is_told(summary, mention)]
        if tellings:
            told.append(Finding("told", tellings[0], TOLD, reach=len(tellings[0])))
        elif not mentions:
            missing.append(fact)
    return told, missing


def _spoilt(found_names: Sequence[range], invented: Sequence[Finding]) -> list[range]:
    """The names with a part that the source does not have: of "Anna Falcato" for Inês Falcato, the rest is no merit."""
    wrong = _members([finding.words for finding in invented])
    return [name for name in found_names if not wrong.isdisjoint(name)]


def _members(ranges: Sequence[range]) -> set[int]:
    return {i for words in ranges for i in words}


def _feedback(name: str, summary: Text, marks: list[Mark], missing: list[Fact], is_too_short: bool) -> Feedback:
    critique = Critique()
    spans = []
    for kind, (_, reason) in REMARKS.items():
        alike = [mark for mark in marks if mark.kind == kind]
        for mark, phrase in zip(alike, critique.mark(kind, summary.string, alike), strict=True):
            spans.append(
                Span(
                    start=mark.start,
                    end=mark.end,
                    label=mark.label,
                    severity=mark.severity,
                    phrase=phrase,
                    reason=reason,
                    critic=name,
                )
            )
    omissions = []
    if is_too_short:
        what = "a complete statement"
        omissions.append(Omission(text=what, severity=TOO_SHORT, phrase=critique.lack(what)))
    texts = [fact.text for fact in missing]
    for text, phrase in zip(texts, critique.miss(texts), strict=True):
        omissions.append(Omission(text=text, severity=MISSING, phrase=phrase))
    spans.sort(key=lambda span: span.start)
    return Feedback(
        critique=critique.text, spans=spans, omissions=omissions, score=total(spans, omissions), critic=name
    )


def total(spans: Sequence[Span], omissions: Sequence[Omission]) -> float:
    """The sum of all severities, praise positive, blame and omissions negative."""
    praise = math.fsum(span.severity for span in spans if span.label == "good")
    blame = math.fsum(span.severity for span in spans if span.label == "poor")
    return round(praise - blame - math.fsum(omission.severity for omission in omissions), 6)
