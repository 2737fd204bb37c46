from text2grad.critics.rules.facts import FACTS_PER_SENTENCE, MAX_FACTS, Fact, key_facts, match_facts
from text2grad.text.words import parse_text

REPORT = (
    "Fans of the Toledo Lampreys had packed away their banners after the seventh inning. Then came eight runs in a "
    "row. The Lampreys beat the Fort Wayne Coopers 11-9 on Tuesday night, with a home run by the rookie DeShawn "
    "Piotrowski. Coach Artie Vandergriff followed the comeback on a radio in the car park, and 4,200 people saw it."
)


def fact(text: str, *keys: str, context: str = "", acronym: str | None = None) -> Fact:
    return Fact(text, keys, frozenset(context.split()), acronym)


def quotes(fact: Fact, summary: str) -> list[str]:
    text = parse_text(summary)
    return [summary[text.words[m.start].start : text.words[m.stop - 1].end] for m in fact.mentions(text)]


def test_facts_are_few_spread_and_in_reading_order():
    text = parse_text(REPORT)
    facts = [fact.text for fact in key_facts(text)]

    assert facts == [
        "Toledo Lampreys",
        "seventh inning",
        "eight runs",
        "Fort Wayne Coopers",
        "DeShawn Piotrowski",
        "Coach Artie Vandergriff",
    ]
    assert len(facts) == MAX_FACTS


def test_no_sentence_of_a_longer_text_holds_more_than_its_share():
    crowded = "Ann met Bob, Cid, Dot, Eve and Fay in Rome. " + "They ate bread and cheese. " * 2 + "Gus paid 40 euros."
    first = crowded.split(".")[0]

    assert sum(fact.text in first for fact in key_facts(parse_text(crowded))) == FACTS_PER_SENTENCE


def test_a_number_is_named_with_what_it_counts():
    facts = key_facts(
        parse_text("They had 12,600 kettles. They were at 41 per cent. It was in 1987. There was a sum of €2.80.")
    )

    assert [fact.text for fact in facts if fact.keys[0] in (12600, 41, 1987, 2.8)] == [
        "12,600 kettles",
        "41 per cent",
        "in 1987",
        "of €2.80",
    ]


def test_dates_general_and_function_words_are_no_facts():
    assert key_facts(parse_text("On Monday there was more of the same, and in May a new year.")) == ()


def test_a_name_is_mentioned_by_most_of_it_its_last_word_or_its_acronym():
    who = fact("World Health Organization", "world", "health", "organ", acronym="WHO")

    assert quotes(who, "The World Health Organization said so.") == ["World Health Organization"]
    assert quotes(who, "The WHO said so, and who believed it?") == ["WHO"]
    assert quotes(who, "World Health is a magazine.") == ["World Health"]
    assert quotes(who, "The Organization said so.") == ["Organization"]
    assert quotes(who, "The health of the world is a matter of organization.") == []


def test_a_mention_stays_within_its_sentence():
    assert quotes(fact("Ann Bell", "an", "bel"), "They met Bell. Ann left.") == ["Bell"]


def test_a_statement_of_a_fact_has_two_words_of_its_context_nearby():
    kettles = fact("kettles", "kettl", context="sel dund handl")
    mention = range(1, 2)

    assert kettles.is_stated(parse_text("The kettles with loose handles were sold."), mention)
    assert not kettles.is_stated(parse_text("The kettles were sold."), mention)
    assert not kettles.is_stated(parse_text("The kettles were sold. Handles came from Dundee."), mention)
    assert not kettles.is_stated(parse_text("The kettles were sold to a b c d e f g h handle."), mention)


def test_facts_are_stated_mentioned_or_missing():
    facts = [fact(name, name, context="sel dunde") for name in ("kettl", "pan", "spoon", "fork")]
    text = parse_text("Kettles, pans and forks were sold in Dundee. Spoons. Kettles were sold in Dundee.")

    stated, missing = match_facts(text, facts, ignored={3}, not_stating={1})

    assert stated == [range(1)]  # the first of two
    assert [fact.text for fact in missing] == ["fork"]  # ignored; "pan" and "spoon" are mentioned without a statement
