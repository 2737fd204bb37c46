"""A rule critic for summaries: are they supported by the source, and do they state its key facts?

The critic needs no model and no reference. The source is `meta["document"]` of an example, or its prompt. The score is
the sum of all severities: praise is positive, blame and omissions are negative. Since a policy is optimised against
that sum, the rules are designed so that only a good summary has a high one.

Praise
    fact        +0.5  A key fact, once: one of up to six names, numbers and central words, at most two from one
                      sentence of the source. It counts where a proper sentence of the summary, within the length limit,
                      has at least two words of its context in the source near it.

Blame
    number      -0.8  A number whose value the source does not have; after "about" and the like, none within 10% of it.
    name        -0.7  A name, or a part of one, that the source does not have, neither as demonym nor as acronym.
    word        -0.25 Any other content word that the source does not have in any form. Very general words are free.
    filler      -0.5  "Here is a summary", "The text discusses ...", where the source does not use these words.
    copied      -0.6 to -1  Twelve words, or nearly all of a sentence, in the words and the order of the source.
    repeated    -0.3 to -1  Four words, two of them content, that occurred before; a sentence with four fifths of its
                      content from earlier sentences; a doubled word.
    listed      -0.3 to -1  No sentence: under four words, hardly any function words, an enumeration, no verb.
    broken      -0.3  "the of", "a was", "of and", "the.": the grammar of shuffled words.
    padding     -0.05 per word beyond the length limit: 45% of the source, at least 15, at most 60 words.
    layout      -0.2  Line breaks and list marks.
    unfinished  -0.3  No full stop at the end.

Omissions, which are charged to the end token
    a fact      -0.3  A key fact that no sentence within the length limit mentions. A copied one is not missing.
    a statement -1    Fewer than eight words: an empty summary must cost more than a clumsy attempt.

So a shorter summary earns less praise and has more omissions; a longer one pays for padding and repetition and gains
nothing, since every fact is praised once; a copied sentence pays as much as the omission of its facts would cost, and
earns no praise; a list of key words is no sentence and states nothing. Marks never overlap, long faults are marked over
at most six words, and marks cover at most 40% of a text (60 characters of a short one), most severe first: marks all
over a text teach nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from text2grad.critics.rules import faults
from text2grad.critics.rules.copying import copied_runs
from text2grad.critics.rules.facts import Fact, match_facts
from text2grad.critics.rules.findings import (
    Finding,
    FindingsWriter,
    PlacedFinding,
    place_findings,
    select_most_severe,
    word_indices,
)
from text2grad.critics.rules.source import Source
from text2grad.errors import UserError
from text2grad.schema import Example, Feedback
from text2grad.text.words import Text, find_names, parse_text

FACT, MISSING, TOO_SHORT = 0.5, 0.3, 1.0
MIN_SUMMARY_WORDS = 8
LENGTH_SHARE, MIN_LIMIT, MAX_LIMIT = 0.45, 15, 60
COVERAGE, COVERAGE_OF_SHORT_TEXT = 0.4, 60

# By kind: the opening of the sentence in the critique, in this order, and the reason of each span.
REMARKS = {
    "fact": ("It rightly reports", "a key fact of the source"),
    "number": ("The source does not give the number", "number that is not in the source"),
    "name": ("The source does not name", "name that is not in the source"),
    "word": ("The source does not support", "word that the source does not support"),
    "filler": ("It talks about the text instead of telling what it says in", "talk about the text"),
    "copied": ("It copies the source instead of summing it up in", "copied from the source"),
    "repeated": ("It repeats itself in", "said before"),
    "listed": ("It strings words together instead of making a sentence in", "no sentence"),
    "broken": ("The grammar breaks down in", "broken grammar"),
    "padding": ("It is too long; it should have ended before", "beyond the length of a summary"),
    "layout": ("It is not running text; it has", "line break or list mark"),
    "unfinished": ("It breaks off after", "unfinished sentence"),
}


class GroundingCritic:
    """Compares summaries with their source by the rules in the module's docstring.

    max_words: the length limit of a summary; default: a share of its source.
    """

    name = "grounding"

    def __init__(self, max_words: int | None = None) -> None:
        if max_words is not None and max_words < 1:
            raise UserError(f"grounding: max_words is {max_words}; give at least 1, or None for a share of the source")
        self.max_words = max_words

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        """Return one Feedback per example; a failed one where the source has no words."""
        return [self._critique(example) for example in examples]

    def _critique(self, example: Example) -> Feedback:
        document = example.meta.get("document", example.prompt_text)
        source = _parse_source(document) if isinstance(document, str) else None
        if source is None or not source.text.words:
            return Feedback.failure(
                self.name,
                f'{example.id}: no source text; put it into the prompt or, as a string, into meta["document"]',
            )
        summary = parse_text(example.completion)
        findings, missing = evaluate_summary(summary, source, self.max_words or length_limit(source))
        writer = FindingsWriter(self.name)
        writer.add_findings(findings, summary.string, REMARKS)
        if len(summary.words) < min(MIN_SUMMARY_WORDS, len(source.text.words)):
            writer.add_omissions("It lacks", [("a complete statement", TOO_SHORT)], quote="")
        writer.add_omissions("It leaves out what the source says about", [(fact.text, MISSING) for fact in missing])
        return writer.scored_feedback()


@lru_cache(maxsize=4096)
def _parse_source(document: str) -> Source:
    return Source(parse_text(document))


def length_limit(source: Source) -> int:
    """Return the maximum number of words of a summary of this source."""
    return min(MAX_LIMIT, max(MIN_LIMIT, round(LENGTH_SHARE * len(source.text.words))))


def evaluate_summary(summary: Text, source: Source, limit: int) -> tuple[list[PlacedFinding], list[Fact]]:
    """Return the findings on a summary, in reading order, and the facts that it does not mention."""
    names = list(find_names(summary))
    invented = list(faults.unsupported_names(summary, names, source))
    copied = copied_runs(summary, source)
    non_sentences = faults.non_sentences(summary)
    wrong = word_indices(finding.words for finding in invented)
    # in "Anna Falcato" for Inês Falcato, "Falcato" earns no praise
    partly_invented = [name for name in names if not wrong.isdisjoint(name)]
    stated, missing = match_facts(
        summary,
        source.facts,
        ignored=word_indices([*non_sentences, range(limit, len(summary.words))]),
        not_stating=word_indices([*copied, *partly_invented]),
    )
    # in order of precedence: a word belongs to the first finding that has it
    findings = [
        *faults.unsupported_numbers(summary, source),
        *invented,
        *faults.fillers(summary, source),
        *faults.repetitions(summary),
        *faults.broken_grammar(summary),
        *faults.unsupported_words(summary, names, source),
        *(Finding("fact", words, FACT, max_words=len(words)) for words in stated),
        *faults.copies(copied),
        *faults.listings(non_sentences),
        *faults.padding(summary, limit),
        *faults.unfinished(summary),
    ]
    placed = [*place_findings(findings, summary), *faults.layout(summary)]
    return select_most_severe(placed, max_coverage(summary)), missing


def max_coverage(text: Text) -> int:
    """Return how many characters of a text may be marked."""
    return max(COVERAGE_OF_SHORT_TEXT, int(COVERAGE * len(text.string)))
