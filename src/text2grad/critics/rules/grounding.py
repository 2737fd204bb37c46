"""A rule critic for summaries: are they supported by the source, do they say enough of it, and are they well formed?

The critic needs no model and no reference. The source is `meta["document"]` of an example, or its prompt.

The score is from -1 to 1: `2 * q - 1`, where q is the product of the factors in `quality`. A product, because a policy
is optimised against it: an empty summary, a refusal, a copy of the source, key words and shuffled words each bring one
factor close to 0, and nothing makes up for that.

Blame says where a factor lost what it lost. The severities of the first five kinds sum to one minus `faithful`; those
of each other kind to a twentieth of what its factor, in brackets, lost: the score pays for that, and errors come first.
    number, name, word, claim, uncertain   Words that are likely part of an error (`support`): a number, a name or a
                word that the source does not have, words of the source that it has in another connection; where none
                is likely, the likeliest word. For a number or name, the source's own is the replacement where it has
                exactly one of the kind (`suggestions`)
    copied      Runs of four or more words of the source, where they are four fifths of the summary. (original)
    repeated    Four words, two of them content, that occurred before; a sentence with four fifths of its content from
                earlier sentences; a doubled word. (fresh)
    broken      Words in an order that makes no sentence: "the of", "a was", "in the." (ordered)
    listed      No sentence: under five words, hardly any function words, an enumeration. (worded)
    padding     Words beyond the length limit: 40% of the source, at least 15, at most 150 words. (concise)
    unfinished  No full stop at the end, or an end after a word that ends no sentence. (finished)

Praise is for key facts, once each: up to six names, numbers and central words, at most two from one sentence of the
source, where at least two words of its context in the source are near it. Omissions are the key facts that nothing
within the length limit mentions; their severities sum to one minus the factor `informative`.

Marks never overlap, long faults are marked over at most six words, and marks cover at most 80% of a text (60
characters of a short one), most severe first: marks all over a text teach nothing.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from text2grad.critics.rules import copying, facts, faults, findings, quality, suggestions, support, word_order
from text2grad.critics.rules import source as source_module
from text2grad.critics.rules.copying import copied_runs
from text2grad.critics.rules.facts import Fact, match_facts
from text2grad.critics.rules.findings import (
    MAX_MARKED_WORDS,
    Finding,
    FindingsWriter,
    PlacedFinding,
    place_findings,
    select_most_severe,
    spread,
    word_indices,
)
from text2grad.critics.rules.missing_fields import warn_of_missing_sources
from text2grad.critics.rules.quality import Quality
from text2grad.critics.rules.source import Source
from text2grad.critics.rules.suggestions import suggest
from text2grad.critics.rules.support import SentenceSupport, assess_support, support_weights, unsupported_words
from text2grad.critics.rules.word_order import ends_sentence, transition_information
from text2grad.errors import UserError
from text2grad.schema import Example, Feedback
from text2grad.text.words import Text, consecutive_runs, parse_text

FACT = 0.1
FORM_WEIGHT = 0.05
LENGTH_SHARE, MIN_LIMIT, MAX_LIMIT = 0.4, 15, 150
COVERAGE, COVERAGE_OF_SHORT_TEXT = 0.8, 60
MIN_COPIED_RUN = 4
MAX_BROKEN, MAX_BROKEN_INFORMATION = 3, -0.7

# By kind: the opening of the sentence in the critique, in this order, and the reason of each span.
REMARKS = {
    "fact": ("It rightly reports", "a key fact of the source"),
    "number": ("The source does not give the number", "number that is not in the source"),
    "name": ("The source does not name", "name that is not in the source"),
    "word": ("The source does not support", "word that the source does not support"),
    "claim": ("The source hardly bears out", "words of the source in another connection"),
    "uncertain": ("Its weakest point is", "the least supported word"),
    "copied": ("It copies the source instead of summing it up in", "copied from the source"),
    "repeated": ("It repeats itself in", "said before"),
    "listed": ("It strings words together instead of making a sentence in", "no sentence"),
    "broken": ("The grammar breaks down in", "broken grammar"),
    "padding": ("It is too long; it should have ended before", "beyond the length of a summary"),
    "unfinished": ("It breaks off after", "unfinished sentence"),
}


class Judgement(NamedTuple):
    """Findings in reading order, key facts that are not mentioned, and the factors of the score."""

    findings: list[PlacedFinding]
    missing: list[Fact]
    quality: Quality


class GroundingCritic:
    """Compares summaries with their source by the rules in the module's docstring.

    max_words: the length limit of a summary; default: a share of its source.
    """

    name = "grounding"
    independent = True

    def __init__(self, max_words: int | None = None) -> None:
        if max_words is not None and max_words < 1:
            raise UserError(f"grounding: max_words is {max_words}; give at least 1, or None for a share of the source")
        self.max_words = max_words

    def fingerprint(self) -> str:
        """Return a digest of the rules and weights, and the settings."""
        return f"grounding {_rules_digest()} {self.max_words}"

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        """Return one Feedback per example; a failed one where the source has no words.

        Prompts that are taken as the source and hardly are one are warned of once.
        """
        warn_of_missing_sources(examples)
        return [self._critique(example) for example in examples]

    def _critique(self, example: Example) -> Feedback:
        document = example.meta.get("document", example.prompt_text)
        source = _parse_source(document) if isinstance(document, str) else None
        if source is None or not source.text.words:
            return Feedback.failure(
                self.name,
                'no source text; put it into the prompt or, as a string, into meta["document"]',
            )
        summary = parse_text(example.completion)
        judgement = judge_summary(summary, source, self.max_words or length_limit(source))
        writer = FindingsWriter(self.name)
        writer.add_findings(judgement.findings, summary.string, REMARKS)
        is_silent = not summary.words
        lost = (1 - judgement.quality.informative) / max(1, len(judgement.missing) + is_silent)
        severity = max(findings.MIN_SEVERITY, round(lost, 3))
        if is_silent:
            writer.add_omissions("It lacks", [("a complete statement", severity)], quote="")
        missing = [(fact.text, severity) for fact in judgement.missing]
        writer.add_omissions("It leaves out what the source says about", missing)
        return writer.scored_feedback(judgement.quality.score)


@lru_cache(maxsize=4096)
def _parse_source(document: str) -> Source:
    return Source(parse_text(document))


@lru_cache(maxsize=1)
def _rules_digest() -> str:
    modules = (
        *(copying, facts, faults, findings, quality, source_module, suggestions, support, word_order),
        sys.modules[__name__],
    )
    parts = [*map(inspect.getsource, modules), repr(support_weights()), repr(word_order.information_table())]
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()


def length_limit(source: Source) -> int:
    """Return the maximum number of words of a summary of this source."""
    return min(MAX_LIMIT, max(MIN_LIMIT, round(LENGTH_SHARE * len(source.text.words))))


def max_coverage(text: Text) -> int:
    """Return how many characters of a text may be marked."""
    return max(COVERAGE_OF_SHORT_TEXT, int(COVERAGE * len(text.string)))


def judge_summary(summary: Text, source: Source, limit: int) -> Judgement:
    """Return findings, missing facts and the factors of the score."""
    if not summary.words:
        return Judgement([], list(source.facts), Quality.worst())
    beyond = set(range(limit, len(summary.words)))
    sentences = assess_support(summary, source)
    copied = copied_runs(summary, source, MIN_COPIED_RUN)
    repeated = word_indices(finding.words for finding in faults.repetitions(summary))
    listed = faults.non_sentences(summary)
    original = quality.originality(summary, copied)
    faithful = quality.faithfulness(sentences)
    unsupported = list(_unsupported(summary, sentences, source, 1 - faithful))
    blamed = word_indices(finding.words for finding in unsupported if finding.kind != "uncertain")
    # in "Anna Falcato" for Inês Falcato, "Falcato" earns no praise
    misnamed = [name for name in summary.names if not blamed.isdisjoint(name)]
    not_stating = blamed | word_indices([*misnamed, *listed, *(copied if original < 1 else [])])
    stated, missing = match_facts(summary, source.facts, ignored=beyond, not_stating=not_stating)
    is_finished = faults.ends_with_full_stop(summary) and ends_sentence(summary, summary.sentences[-1])
    factors = Quality(
        faithful=faithful,
        informative=quality.informativeness(summary, source, beyond, len(stated)),
        original=original,
        ordered=quality.orderliness(summary),
        worded=1 - len(word_indices(listed)) / len(summary.words),
        concise=quality.conciseness(summary, limit),
        fresh=quality.freshness(summary, repeated),
        finished=1.0 if is_finished else quality.UNFINISHED,
    )
    last = len(summary.words) - 1
    # in order of precedence: a word belongs to the first finding that has it
    found = [
        *_form_faults("unfinished", [(range(last, last + 1), 1.0)], factors.finished),
        *unsupported,
        *_form_faults("repeated", _weighted(consecutive_runs(sorted(repeated))), factors.fresh),
        *_form_faults("broken", list(_broken(summary)), factors.ordered),
        *(Finding("fact", words, FACT, max_words=len(words)) for words in stated),
        *_form_faults("copied", _weighted(copied), factors.original),
        *_form_faults("listed", _weighted(listed), factors.worded),
        *_form_faults("padding", [(range(limit, last + 1), 1.0)], factors.concise),
    ]
    return Judgement(select_most_severe(place_findings(found, summary), max_coverage(summary)), missing, factors)


def _form_faults(kind: str, runs: Sequence[tuple[range, float]], factor: float) -> list[Finding]:
    return spread(kind, runs, FORM_WEIGHT * (1 - factor), MAX_MARKED_WORDS)


def _weighted(runs: Iterable[range]) -> list[tuple[range, float]]:
    return [(run, float(len(run))) for run in runs]


def _unsupported(summary: Text, sentences: Iterable[SentenceSupport], source: Source, loss: float) -> Iterator[Finding]:
    """Yield runs of words that are likely part of an error; where no word is likely, the likeliest one.

    The weakest point of a good summary is marked too: its severity, the small remaining risk, tells it from others.
    """
    in_names, unsupported = word_indices(summary.names), unsupported_words(summary, source)
    risks = {i: risk for sentence in sentences for i, risk in zip(sentence.words, sentence.risks, strict=True)}
    blamed = set(_riskiest(summary, risks))
    if not blamed:
        weakest = max(risks, key=lambda i: (summary.words[i].is_content, risks[i], -i))
        yield from spread("uncertain", [(range(weakest, weakest + 1), 1.0)], loss)
    runs = [
        (run, sum(risks[i] for i in run))
        for sentence in summary.sentences
        for run in consecutive_runs(i for i in sentence if i in blamed)
    ]
    for finding in spread("claim", runs, loss):
        kind = _reason(summary, finding.words, in_names, unsupported)
        replacement = suggest(summary, finding.words, source) if kind in ("number", "name") else None
        yield finding._replace(kind=kind, replacement=replacement)


def _riskiest(summary: Text, risks: dict[int, float]) -> Iterator[int]:
    """Yield the words above the threshold, likeliest first, as many as may be marked together."""
    threshold, room = support_weights().threshold, max_coverage(summary)
    for i, risk in sorted(risks.items(), key=lambda item: (-item[1], item[0])):
        room -= summary.words[i].end - summary.words[i].start + 1
        if room < 0 or risk <= threshold:
            return
        yield i


def _reason(summary: Text, words: range, in_names: set[int], unsupported: set[int]) -> str:
    missing = unsupported.intersection(words)
    if any(summary.words[i].lexeme.is_number for i in missing):
        return "number"
    if not missing.isdisjoint(in_names):
        return "name"
    return "word" if missing else "claim"


def _broken(summary: Text) -> Iterator[tuple[range, float]]:
    """Yield the least likely neighbours of the summary, at most MAX_BROKEN."""
    pairs = [pair for sentence in summary.sentences for pair in transition_information(summary, sentence)]
    for word, information in sorted(pairs, key=lambda pair: pair[1])[:MAX_BROKEN]:
        if information < MAX_BROKEN_INFORMATION:
            stop = summary.sentences[summary.words[word].sentence].stop
            yield range(word, min(word + 2, stop)), -information
