"""Words of an answer that give the gold one, another one, or hedge."""

from __future__ import annotations

import pytest

from text2grad.critics.rules.gold import competing_answers, hedges, listed_items, parse_gold
from text2grad.text.words import parse_text

NOTHING: frozenset[str | float] = frozenset()


def quoted(answer: str, words: range) -> str:
    text = parse_text(answer)
    return answer[text.words[words[0]].start : text.words[words[-1]].end]


@pytest.mark.parametrize(
    ("gold", "kind"),
    [
        ("308", "number"),
        ("four", "number"),
        ("15 March 1990", "number"),
        ("May", "number"),
        ("Kawann Short", "name"),
        ("Denver", "name"),
        ("the University of Chicago", "name"),
        ("economic inequality", "phrase"),
        ("no", "phrase"),
    ],
)
def test_the_kind_of_an_answer(gold: str, kind: str) -> None:
    assert parse_gold(gold).kind == kind


@pytest.mark.parametrize(
    ("gold", "answer", "given", "share"),
    [
        ("308", "They gave up 308 points.", "308", 1.0),
        ("1,200", "There were 1200 of them.", "1200", 1.0),
        ("two", "It has 2 wings.", "2", 1.0),
        ("15 March 1990", "On the 15th of March 1990.", "15th of March 1990", 1.0),
        ("Kawann Short", "The leader was Short.", "Short", 0.5),
        ("economic inequality", "It is about inequality of the economic kind.", "inequality of the economic", 1.0),
        ("civil rights movement", "The movement for civil rights.", "movement for civil rights", 1.0),
        ("no", "No.", "No", 1.0),
    ],
)
def test_a_right_answer_is_found_in_other_forms(gold: str, answer: str, given: str, share: float) -> None:
    ((words, found),) = parse_gold(gold).mentions(parse_text(answer))

    assert (quoted(answer, words), found) == (given, share)


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("308", "They gave up 309 points."),
        ("15 March 1990", "On 15 March 1991."),
        ("Kawann Short", "The leader was Kawann Long."),
        ("economic inequality in towns", "It is about economics."),
        ("24", ""),
        ("old city schools became new colleges", "colleges new became city old schools"),
    ],
)
def test_a_part_that_could_be_another_answer_is_not_right(gold: str, answer: str) -> None:
    assert list(parse_gold(gold).mentions(parse_text(answer))) == []


def test_competing_answers_are_of_the_same_kind_and_not_from_the_question():
    answer = "In 2015 Jared Allen had 136 sacks for Carolina."
    known = frozenset(parse_text("How many sacks in 2015?").keys)

    numbers = competing_answers(parse_text(answer), parse_gold("24"), known, NOTHING)
    named = competing_answers(parse_text(answer), parse_gold("Kawann Short"), known, NOTHING)

    assert [quoted(answer, run) for run in numbers] == ["136"]
    assert [quoted(answer, run) for run in named] == ["Jared Allen", "Carolina"]


def test_a_name_that_opens_the_answer_is_a_name_if_the_passage_says_so():
    opening, gold = parse_text("Denver won."), parse_gold("Carolina")
    proper = frozenset(parse_text("Denver").keys)

    assert competing_answers(opening, gold, NOTHING, NOTHING) == []
    assert competing_answers(opening, gold, NOTHING, proper) == [range(1)]


def test_answers_lined_up_with_the_right_one_hedge_it():
    answer = "It was 24, 308, 136 or 118, in 2015."
    text, gold = parse_text(answer), parse_gold("308")
    ((given, _),) = gold.mentions(text)

    found = hedges(text, given, competing_answers(text, gold, NOTHING, NOTHING), NOTHING, None)

    assert [quoted(answer, run) for run in found] == ["24", "136", "118"]


def test_a_sentence_that_only_offers_another_answer_hedges_and_one_that_says_more_does_not():
    answer = "They gave up 308 points. They gave up 24 points. Jared Allen had 136 sacks."
    text, gold = parse_text(answer), parse_gold("308")
    known = frozenset(parse_text("How many points did they give up?").keys)
    ((given, _),) = gold.mentions(text)

    found = hedges(text, given, competing_answers(text, gold, known, NOTHING), known, None)

    assert [quoted(answer, run) for run in found] == ["24"]


def test_what_the_passage_itself_lines_up_is_no_hedge():
    answer = "In Denver, Colorado."
    text, gold = parse_text(answer), parse_gold("Denver")
    ((given, _),) = gold.mentions(text)
    others = competing_answers(text, gold, NOTHING, NOTHING)

    assert [quoted(answer, run) for run in hedges(text, given, others, NOTHING, None)] == ["Colorado"]
    assert hedges(text, given, others, NOTHING, parse_text("He lived in Denver, Colorado.")) == []


@pytest.mark.parametrize(
    ("answer", "items"),
    [
        ("Moe, Hovden, Fedje; Bergen", ["Moe", "Hovden", "Fedje", "Bergen"]),
        ("It is Moe. It is Hovden. It is 24. It is 9.", ["It is Moe", "It is Hovden", "It is 24", "It is 9"]),
        ("1871\n1952\n1984", []),
        ("In Bergen, a town of 9, the engineer Ingrid Moe was born, and she built it in 1871.", []),
    ],
)
def test_an_enumeration_has_four_short_items_or_more(answer: str, items: list[str]) -> None:
    assert [quoted(answer, item) for item in listed_items(parse_text(answer))] == items
