"""Each rule changes what it says, and nothing where it does not apply."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from text2grad.reward_model.corruptions import additions, facts, omissions, relations
from text2grad.reward_model.corruptions.corrupt import RULES, Rule
from text2grad.reward_model.corruptions.edits import apply_edits
from text2grad.reward_model.corruptions.material import FaithfulText, build_pool, faithful_text
from text2grad.schema import Example

OTHER = (
    "The bridge in Aarhus was closed by Ingrid Solberg, who had been the mayor since 1994. "
    "Engineers of the railway counted eleven cracks under the northern arch. "
    "A replacement will cost the ministry 48 million kroner before the summer."
)


def text(completion: str, source: str | None = None, **fields: Any) -> FaithfulText:
    source = completion if source is None else source
    meta = {"document": source, **fields.pop("meta", {})}
    return faithful_text(Example(id="1", prompt=f"{source}\n\nSummarise.", completion=completion, meta=meta, **fields))


POOL = build_pool([text(OTHER)])


def outcomes(rule: Rule, faithful: FaithfulText, tries: int = 30) -> set[str]:
    """All texts that the rule makes of this one."""
    edits = [rule(faithful, POOL, Random(seed)) for seed in range(tries)]
    return {apply_edits(faithful.example.completion, [edit])[0] for edit in edits if edit is not None}


@pytest.mark.parametrize("rule", RULES)
def test_a_text_without_an_occasion_is_left_alone(rule: Rule) -> None:
    assert outcomes(rule, text("hm", source="")) == set()


def test_a_name_becomes_one_of_the_source_or_of_another_text() -> None:
    source = "Anna Lind wrote to Peter Voss. Peter Voss lives in Bern."
    made = outcomes(facts.exchange_name, text("A letter went to Peter Voss's house.", source))
    assert made == {"A letter went to Anna Lind's house.", "A letter went to Ingrid Solberg's house."}


def test_a_name_is_not_exchanged_for_a_part_of_itself() -> None:
    assert not outcomes(facts.exchange_name, text("It was Sheikh Nawwaf.", "Nawwaf spoke. It was Sheikh Nawwaf.")) & {
        "It was Nawwaf."
    }


def test_a_number_becomes_one_of_the_source_that_is_written_alike_or_a_near_one() -> None:
    made = outcomes(facts.exchange_number, text("It cost $40.", "The first cost $12, in 1998. It cost $40."))
    assert "It cost $12." in made
    assert "It cost $40." not in made
    assert all(one.startswith("It cost $") and one.endswith(".") for one in made)


def test_a_year_stays_a_year_and_a_spelt_number_spelt() -> None:
    assert all(1980 < int(one[3:7]) < 2020 for one in outcomes(facts.exchange_number, text("In 1999.")))
    made = outcomes(facts.exchange_number, text("There were seven boats."))
    assert made
    assert all(one.split()[2].isalpha() and one != "There were seven boats." for one in made)


def test_dates_and_units_stay_of_their_kind() -> None:
    assert outcomes(facts.exchange_date, text("It is on Friday.")) <= {
        f"It is on {day}." for day in ("Monday", "Tuesday", "Wednesday", "Thursday", "Saturday", "Sunday")
    }
    assert outcomes(facts.exchange_unit, text("It is 3 km long.")) == {f"It is 3 {u} long." for u in ("mm", "cm", "m")}


def test_a_word_becomes_one_that_ends_alike_and_is_new() -> None:
    assert outcomes(facts.exchange_word, text("They counted the tracks.")) == {"They counted the cracks."}
    assert outcomes(facts.exchange_word, text("They counted the tracks.", source="")) == set()


def test_the_answer_becomes_that_of_another_question() -> None:
    meta = {"other_answers": ["Bern", "1848"]}
    faithful = text("Zurich lies on it.", reference=["Zurich"], meta=meta)
    assert outcomes(facts.exchange_answer, faithful) == {"Bern lies on it."}
    assert outcomes(facts.exchange_answer, text("It lies there.", reference=["Zurich"], meta=meta)) == set()


def test_relations_are_reversed_and_negated() -> None:
    assert outcomes(relations.reverse_relation, text("Before noon it rose.")) == {
        "After noon it rose.",
        "Before noon it fell.",
    }
    assert outcomes(relations.negate, text("It is here.")) == {"It is not here."}
    assert outcomes(relations.negate, text("It is not here.")) == {"It is here."}
    assert outcomes(relations.negate, text("They have gone.")) == {"They have not gone."}
    assert outcomes(relations.negate, text("They have a dog.")) == set()


def test_additions_are_new_and_end_where_a_phrase_may() -> None:
    faithful = text("The town council paid for a new roof.")
    assert outcomes(additions.add_phrase, faithful) <= {
        f"The town council paid {phrase} for a new roof." for phrase in POOL.phrases
    } | {f"The town council paid for a new roof {phrase}." for phrase in POOL.phrases}
    assert "in Aarhus" in POOL.phrases
    assert outcomes(additions.add_clause, faithful) == {
        "The town council paid for a new roof, who had been the mayor since 1994."
    }
    assert all(one.startswith(faithful.example.completion) for one in outcomes(additions.add_sentence, faithful))
    assert outcomes(additions.add_modifier, faithful)


def test_nothing_is_added_that_the_source_says() -> None:
    faithful = text("The council paid.", source=OTHER)
    for rule in (additions.add_phrase, additions.add_clause, additions.add_sentence):
        assert outcomes(rule, faithful) == set()


def test_a_digression_is_from_the_passage_of_a_question() -> None:
    meta = {"question": "Who closed it?", "passage": OTHER}
    made = outcomes(additions.add_digression, text("Ingrid Solberg closed it.", source="", meta=meta))
    assert "Ingrid Solberg closed it. Engineers of the railway counted eleven cracks under the northern arch." in made
    assert outcomes(additions.add_digression, text("Ingrid Solberg closed it.", source=OTHER)) == set()


def test_a_sentence_is_repeated_at_the_end() -> None:
    one = "The town council has paid for it."
    assert outcomes(additions.repeat_sentence, text(one)) == {f"{one} {one}"}


def test_sentences_and_clauses_are_dropped_but_not_the_first_sentence() -> None:
    assert outcomes(omissions.drop_words, text("One fell. Two more stood up. Three sat.")) == {
        "One fell. Three sat.",
        "One fell. Two more stood up.",
    }
    assert outcomes(omissions.drop_words, text("It rose to ten, according to the council.")) == {"It rose to ten."}
