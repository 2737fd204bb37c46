"""A rule critic for question answering: is the answer correct, supported by the passage, and no longer than needed?

The critic needs no model. The passage is `meta["document"]` or `meta["passage"]`, the question `meta["question"]` or
the prompt without the passage, the gold answers are the reference, one or several; passage or reference may be missing,
not both.

The score, from -1 to 1, is a product (formula in `qa_score`): how correct the answer is, whether it is an attempt at
all, how little else it says, and how much of that is supported. A correct answer in a few words scores 1 or just below,
a sentence around it little less. A wrong answer scores at most -0.7: nothing but the gold answer earns more. Silence, a
refusal and the question repeated score -1. Every other candidate that is offered takes two thirds of what
an answer is worth, and every 25 words that it does not need divide it by e: the whole passage and a list of all its
names score below a wrong answer, though they contain the right one. Spans and omissions say where the score comes from;
their severities are:

Praise
    correct     +1    The first place that gives a gold answer of up to 12 words; less for a part of it. All of its
                      numbers are needed, and of a long one the order of its words.
    fact        +0.5  A key fact of a long gold answer, once, as in the grounding critic.
    relevant    +0.3  Without a gold answer: a key fact of the two sentences of the passage that are closest to the
                      question, once.

Blame
    wrong       -0.8  Another answer instead of the gold one: the first of its kind (a number or date, a name), else the
                      first words that are not in the question. Where it is the only one of its kind, the gold answer
                      is its replacement.
    hedged      -0.6  Another answer in addition to the correct one, as in "24, 308 or 136" and "It was 24. It was
                      308.", and every item of a longer enumeration; three are marked at most.
    refusal     -0.5  "I don't know", "The passage does not say".
    number -0.8, name -0.7, word -0.25  Found neither in the passage nor in the question or a gold answer.
    sentence    -0.8  Instead of its words, a sentence with at least four content words, more than half unsupported, and
                      no part of an answer in it.
    irrelevant  -0.4  A sentence after the first that shares less than 30% of its content with a long gold answer.
    filler, repeated, broken, unfinished  as in the grounding critic; an answer of a few words needs no full stop.
    copied      -0.5  More words than the length limit in the words and the order of the passage.
    padding     -0.05 per word, at most -0.8, marked at the length limit: 25 words, or one and a half times the longest
                      gold answer; without one, 45% of the passage, 15 to 60 words.

Omissions
    the answer  -1    No gold answer of up to 12 words is given.
    a fact      -0.3  A key fact of a long gold answer is not mentioned.
    an answer   -1    Nothing but words of the question or of the instruction.
"""

from __future__ import annotations

from collections.abc import Sequence

from text2grad.critics.rules.findings import FindingsWriter
from text2grad.critics.rules.missing_fields import warn_of_missing_references
from text2grad.critics.rules.qa_rules import build_criteria, evaluate_answer
from text2grad.errors import UserError
from text2grad.schema import Example, Feedback
from text2grad.text.words import parse_text

# By kind: the opening of the sentence in the critique, in this order, and the reason of each span.
REMARKS = {
    "correct": ("It rightly answers", "the right answer"),
    "fact": ("It rightly says", "a fact of the right answer"),
    "relevant": ("It is to the point in", "what the passage says about the question"),
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


NOTHING_TO_SAY = "There is nothing to praise and nothing to blame."


class QACritic:
    """Compares answers with their passage and with gold answers by the rules in the module's docstring.

    max_words: the length limit of an answer; default: derived from the gold answers or the passage.
    """

    name = "qa"
    independent = True

    def __init__(self, max_words: int | None = None) -> None:
        if max_words is not None and max_words < 1:
            raise UserError(f"qa: max_words is {max_words}; give at least 1, or None for a limit by the gold answer")
        self.max_words = max_words

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        """Return one Feedback per example; a failed one where there is neither a passage nor a gold answer.

        Questions without a gold answer are warned of once.
        """
        warn_of_missing_references(examples)
        return [self._critique(example) for example in examples]

    def _critique(self, example: Example) -> Feedback:
        passage = example.meta.get("document") or example.meta.get("passage") or ""
        reference = [example.reference] if isinstance(example.reference, str) else example.reference or []
        golds = tuple(answer for answer in reference if parse_text(answer).words)
        if not isinstance(passage, str) or not (parse_text(passage).words or golds):
            return Feedback.failure(
                self.name,
                'neither a passage nor a gold answer; put them into meta["document"] and reference',
            )
        instruction = example.prompt_text.replace(passage, " ") if passage else example.prompt_text
        question = example.meta.get("question") or instruction
        criteria = build_criteria(str(question), passage, golds, self.max_words, instruction)
        answer = parse_text(example.completion)
        findings, missing, score = evaluate_answer(answer, criteria)
        writer = FindingsWriter(self.name)
        writer.add_findings(findings, answer.string, REMARKS)
        writer.add_omissions("It should have said", missing, shorten=True)
        writer.spans.sort(key=lambda span: span.start)
        return writer.feedback(score, default=NOTHING_TO_SAY)
