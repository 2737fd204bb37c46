"""Only a right answer may win, and only by being right: not by copying, hedging, refusing or silence."""

from __future__ import annotations

import os
import random
import re
from itertools import islice, pairwise
from pathlib import Path
from statistics import mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import PASSAGE

from text2grad.critics.rules.qa import QACritic
from text2grad.data import fgrlhf, xquad
from text2grad.errors import UserError
from text2grad.schema import Example, Feedback

DATA = Path(os.environ.get("TEXT2GRAD_DATA", "../shared/data"))

QUESTION = "In which year was the lighthouse at Skarv built?"
LONG_GOLD = (
    "The lighthouse at Skarv was built in 1871 by the engineer Ingrid Moe. Its lamp burned paraffin until 1952, when "
    "it was given electricity by a cable from Hovden."
)
GUESSES = ("1871 1952 24 11 9 1984", "1871\n1952\n1984", "It was 1871. It was 1952. It was built in 1984.")


def critique(
    answer: str,
    gold: str | list[str] | None = "1871",
    question: str = QUESTION,
    passage: str | None = PASSAGE,
    **options: int,
) -> Feedback:
    meta = {"question": question} | ({"document": passage} if passage else {})
    example = Example(id="it", prompt=f"{passage}\n\n{question}", completion=answer, reference=gold, meta=meta)
    return QACritic(**options).critique([example])[0]


def score(answer: str, gold: str | list[str] | None = "1871", question: str = QUESTION) -> float:
    value = critique(answer, gold, question).score
    assert value is not None
    return value


def marked(feedback: Feedback, answer: str) -> list[tuple[str, str, float]]:
    return [(str(span.reason), answer[span.start : span.end], span.severity) for span in feedback.spans]


def omitted(feedback: Feedback) -> list[tuple[str, float]]:
    return [(omission.text, omission.severity) for omission in feedback.omissions]


# What it says


def test_the_right_answer_is_praised_where_it_stands():
    answer = "It was built in 1871."
    feedback = critique(answer)

    assert marked(feedback, answer) == [("the right answer", "1871", 1.0)]
    assert feedback.critique == 'It rightly answers "1871".'
    assert (feedback.score, feedback.omissions) == (1.0, [])


def test_a_wrong_answer_of_the_same_kind_is_blamed_and_the_right_one_missed():
    answer = "It was built in 1952."
    feedback = critique(answer)

    assert marked(feedback, answer) == [("another answer than the right one", "1952", 0.8)]
    assert omitted(feedback) == [("1871", 1.0)]
    assert feedback.critique == 'The answer is not "1952". It should have said "1871".'


def test_a_wrong_name_and_a_wrong_phrase():
    who = critique("Hovden built it.", "Ingrid Moe", "Who built the lighthouse?")
    what = critique("It burned wood.", "paraffin", "What did the lamp burn?")

    assert [name for _, name, _ in marked(who, "Hovden built it.")] == ["Hovden"]
    assert ("another answer than the right one", "wood", 0.8) in marked(what, "It burned wood.")


def test_any_of_several_right_answers_will_do():
    assert score("From May to September.", ["in summer", "from May to September"], "When is it open?") == 1.0


def test_an_answer_offered_among_others_is_hedged():
    answer = "It was 1871, 1952 or 1984."
    feedback = critique(answer)

    assert marked(feedback, answer) == [
        ("the right answer", "1871", 1.0),
        ("offered besides the right answer", "1952", 0.6),
        ("offered besides the right answer", "1984", 0.6),
    ]


@pytest.mark.parametrize(
    "answer",
    ["I don't know.", "I cannot answer that.", "The passage does not say when.", "It is not mentioned.", "Unknown"],
)
def test_a_refusal_is_no_answer_but_no_wrong_one(answer: str) -> None:
    feedback = critique(answer)

    assert [reason for reason, _, _ in marked(feedback, answer)][:1] == ["no answer"]
    assert "another answer than the right one" not in str(feedback.spans)
    assert omitted(feedback) == [("1871", 1.0)]


def test_names_numbers_and_words_that_the_passage_does_not_have():
    answer = "In 1871 Gustav Holm erected it for 5,000 kroner in Norway."
    found = marked(critique(answer), answer)

    assert ("name that is not in the passage", "Gustav Holm", 0.7) in found
    assert ("number that is not in the passage", "5,000", 0.8) in found
    assert ("word that the passage does not support", "erected", 0.25) in found
    assert ("the right answer", "1871", 1.0) in found


def test_a_sentence_without_any_support_is_blamed_as_one():
    answer = "It was built in 1871. Tourists today admire excellent seafood restaurants nearby."
    found = marked(critique(answer), answer)

    assert [reason for reason, quote, _ in found] == ["the right answer", "sentence that the passage does not support"]


def test_a_long_gold_answer_is_compared_by_its_facts():
    answer = "Ingrid Moe built the lighthouse at Skarv in 1871. The hostel has 9 beds and Fedje runs it from May."
    feedback = critique(answer, LONG_GOLD, "Tell me about the lighthouse.")
    found = marked(feedback, answer)

    assert ("a fact of the right answer", "Ingrid Moe", 0.5) in found
    assert ("irrelevant to the question", "The hostel has 9 beds and", 0.4) in found
    assert ("Hovden", 0.3) in omitted(feedback)


def test_without_a_right_answer_the_passage_decides():
    to_the_point = "Ingrid Moe, an engineer from Bergen, built the lighthouse in 1871."
    feedback = critique(to_the_point, None, "Who built the lighthouse at Skarv?")

    assert "It is to the point in" in feedback.critique
    assert (feedback.score or 0) > 0
    assert score("The lighthouse is in Sweden and was built by Gustav Holm.", None) < -0.5


def test_without_a_passage_the_right_answer_decides():
    right, wrong = critique("In 1871.", passage=None), critique("In 1900.", passage=None)

    assert (right.score, wrong.score) == (1.0, -0.7)


def test_without_a_passage_the_prompt_is_the_question():
    question = "Who built the lighthouse at Skarv?"

    def asked(answer: str) -> Feedback:
        return QACritic().critique([Example(id="it", prompt=question, completion=answer, reference="Ingrid Moe")])[0]

    assert asked("Ingrid Moe").score == 1.0
    assert asked(question).score == -1.0
    answer = "The lighthouse at Skarv was built by Olav Berg."
    assert [words for _, words, _ in marked(asked(answer), answer)] == ["Olav Berg"]  # not a word of the question


def test_every_span_quotes_its_words_in_the_critique():
    answer = "It was built in 1952 by Gustav Holm. It was built in 1952 by Gustav Holm."
    feedback = critique(answer)

    assert len(feedback.spans) >= 3
    for span in feedback.spans:
        assert span.phrase is not None
        assert feedback.critique[slice(*span.phrase)] == answer[span.start : span.end]
        assert span.critic == "qa"
    for omission in feedback.omissions:
        assert omission.phrase is not None
        assert feedback.critique[slice(*omission.phrase)] == omission.text


def test_neither_passage_nor_gold_answer_is_a_failure():
    feedback = critique("In 1871.", gold=None, passage=None)

    assert feedback.status == "failed"
    assert feedback.error == ('neither a passage nor a gold answer; put them into meta["document"] and reference')
    with pytest.raises(UserError, match="max_words is 0"):
        QACritic(max_words=0)


def test_the_passage_may_be_called_passage_and_the_question_may_be_in_the_prompt():
    example = Example(
        id="", prompt=f"{PASSAGE}\n\n{QUESTION}", completion="In 1952.", reference="1871", meta={"passage": PASSAGE}
    )

    (feedback,) = QACritic().critique([example])

    assert feedback.score == -0.7
    echo = example.model_copy(update={"completion": QUESTION})
    assert "an answer" in [omission.text for omission in QACritic().critique([echo])[0].omissions]


# What wins


def test_the_order_of_answers():
    first_sentence = PASSAGE.partition(". ")[0] + "."
    answers = [
        "In 1871.",
        first_sentence,
        "In 1871 or 1952.",
        f"{first_sentence} It stands 24 metres high on a granite islet, and its lamp burned paraffin until 1952.",
        "In 1952.",
        "In Bergen.",
        PASSAGE,
        "I don't know.",
    ]

    scores = [score(answer) for answer in answers]

    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == len(scores)
    assert scores[0] == 1.0
    assert scores[-1] == score("") == score("\n") == score(QUESTION) == -1.0


def test_listing_every_candidate_counts_as_wrong():
    wrong = score("In 1952.")

    for guess in (
        *GUESSES[:2],
        "1871, 1952, 1984, 24",
        "Skarv, Ingrid Moe, Bergen, Hovden, Fedje, 1871, paraffin, sheep",
    ):
        assert score(guess) < wrong
    assert score("Skarv, Bergen, Hovden, Fedje, Moe", "Ingrid Moe", "Who built it?") < score("Hovden", "Ingrid Moe")


def test_a_word_of_the_question_is_no_part_of_an_answer():
    assert score("The light of Bergen.", "automatic light", "Of what kind is the light?") <= -0.7
    assert score("The automatic light.", "automatic light", "Of what kind is the light?") == 1.0


@pytest.mark.parametrize("gold", ["1871", LONG_GOLD, None])
def test_neither_copying_nor_repeating_nor_padding_nor_silence_beats_a_good_answer(gold: str | None) -> None:
    good = "Ingrid Moe, an engineer from Bergen, built the lighthouse at Skarv in 1871."
    best = score(good, gold)
    worst = score("", gold)

    for trick in (PASSAGE, f"{good} {good}", f"{good} " * 8, QUESTION, *GUESSES, "Skarv " * 30):
        assert score(trick, gold) < best
    assert worst <= min(score(answer, gold) for answer in (good, PASSAGE, "I don't know."))


def test_a_right_answer_gains_nothing_from_words_beyond_the_limit():
    scores = [score("It was built in 1871 " + "at the time " * length) for length in (0, 8, 12, 16)]

    assert scores == sorted(scores, reverse=True)
    assert scores[0] == 1.0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([*PASSAGE.split(), "Gustav", "5,000", "or", "unknown", "I", "don't", "know.", "\n"])))
def test_marks_never_overlap_and_the_score_is_in_range(words: list[str]) -> None:
    answer = " ".join(words)
    for gold in ("1871", LONG_GOLD, None):
        feedback = critique(answer, gold)

        assert feedback.score is not None
        assert -1 <= feedback.score <= 1
        ends = [(span.start, span.end) for span in feedback.spans]
        assert all(before[1] <= after[0] for before, after in pairwise(ends))
        Example(id="", prompt="", completion=answer, feedback=feedback)


# On real questions


@pytest.mark.skipif(not (DATA / "xquad_en").is_dir(), reason="needs XQuAD under TEXT2GRAD_DATA")
def test_on_xquad_right_beats_wrong_and_wrong_beats_the_passage_and_silence():
    rng = random.Random(0)
    critic = QACritic()
    examples = list(islice(xquad.read(DATA / "xquad_en" / "xquad.en.json.gz"), 0, None, 5))

    def scores(answers: list[str]) -> list[float]:
        asked = [e.model_copy(update={"completion": answer}) for e, answer in zip(examples, answers, strict=True)]
        return [feedback.score or 0.0 for feedback in critic.critique(asked)]

    right = scores([str(next(iter(example.reference or []))) for example in examples])
    passage = scores([example.meta["document"] for example in examples])
    wrong = scores([str(next(iter(rng.choice(examples).reference or []))) for _ in examples])
    silence = scores([""] * len(examples))

    assert mean(a > b for a, b in zip(right, passage, strict=True)) >= 0.99
    assert mean(a > b for a, b in zip(right, wrong, strict=True)) >= 0.98
    assert mean(a > b for a, b in zip(wrong, passage, strict=True)) >= 0.95
    assert {*silence} == {-1.0}


@pytest.mark.skipif(not (DATA / "fgrlhf_qa_feedback").is_dir(), reason="needs QA-Feedback under TEXT2GRAD_DATA")
def test_on_qa_feedback_a_persons_correction_beats_the_answer_it_corrects():
    examples = list(islice(fgrlhf.read(DATA / "fgrlhf_qa_feedback" / "dev_feedback.json.gz"), 200))
    flawed = [
        e for e in examples if e.feedback and e.feedback.spans and e.meta["corrected"].strip() and e.meta["document"]
    ]
    critic = QACritic()
    before = critic.critique(flawed)
    after = critic.critique(
        [example.model_copy(update={"completion": example.meta["corrected"]}) for example in flawed]
    )

    gains = [(b.score or 0) - (a.score or 0) for a, b in zip(before, after, strict=True)]

    assert mean(gain > 0 for gain in gains) > 0.8
    blamed = [
        mean(any(h.start <= at < h.end for h in example.feedback.spans) for at in range(span.start, span.end))
        for example, said in zip(flawed, before, strict=True)
        for span in said.spans
        if span.label == "poor" and example.feedback
    ]
    words = [len(re.findall(r"\w+", example.completion)) for example in flawed]
    assert mean(blamed) > 0.7
    assert len(blamed) < 0.1 * sum(words)


@pytest.mark.parametrize(
    ("answer", "gold", "corrected"),
    [
        ("It was built in 1952.", "1871", "It was built in 1871."),
        ("Hovden", "Ingrid Moe", "Ingrid Moe"),
        ("Hovden, near Bergen", "Ingrid Moe", None),
        ("The engineer was called Hovden.", "Ingrid Moe", "The engineer was called Ingrid Moe."),
        ("In 1952 or 1984.", "1871", None),  # which of them is meant?
        ("I don't know.", "1871", None),
        ("It was built in 1871.", "1871", None),
    ],
)
def test_the_gold_answer_replaces_the_only_wrong_one(answer: str, gold: str, corrected: str | None):
    found = [span for span in critique(answer, gold).spans if span.replacement is not None]
    made = [answer[: span.start] + str(span.replacement) + answer[span.end :] for span in found]
    assert made == ([corrected] if corrected else [])


def test_an_article_is_not_written_twice():
    answer = "It was the Hovden."
    (span,) = critique(answer, "the Baltic Sea", "Which sea is it?", "The Baltic Sea is cold.").spans
    assert answer[: span.start] + str(span.replacement) + answer[span.end :] == "It was the Baltic Sea."
