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
    hedged      -0.6  Another answer besides the right one, as in "24, 308 or 136" and "It was 24. It was 308."; three
                      at most.
    refusal     -0.5  "I don't know", "The passage does not say".
    number -0.8, name -0.7, word -0.25  That neither passage nor question nor a right answer has.
    sentence    -0.8  Instead of its words, a sentence with at least four content words, more than half unsupported, and
                      no part of an answer in it.
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

from collections.abc import Sequence

from text2grad.critics.rules.grounding import total
from text2grad.critics.rules.qa_rules import Note, judge, read_brief
from text2grad.critics.rules.wording import Critique
from text2grad.errors import UserError
from text2grad.schema import Example, Feedback, Omission, Range, Span
from text2grad.text.words import Text, parse_text

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
        golds = tuple(answer for answer in reference if parse_text(answer).words)
        if not isinstance(passage, str) or not (parse_text(passage).words or golds):
            return Feedback.failure(
                self.name,
                f'{example.id}: neither a passage nor a right answer; put them into meta["document"] and reference',
            )
        question = example.meta.get("question") or example.prompt_text.replace(passage, " ")
        brief = read_brief(str(question), passage, golds, self.max_words)
        answer = parse_text(example.completion)
        notes, missing = judge(answer, brief)
        return _feedback(self.name, answer, notes, missing)


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
