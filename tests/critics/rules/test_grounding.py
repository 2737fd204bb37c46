"""The critic's rewards are what a policy is trained on: only a good summary may win them."""

import gzip
import json
import os
import random
import re
from importlib.resources import files
from itertools import islice
from pathlib import Path
from statistics import mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from text2grad.critics.rules.facts import key_facts
from text2grad.critics.rules.grounding import COVERAGE, COVERAGE_OF_SHORT_TEXT, GroundingCritic, judge_summary
from text2grad.critics.rules.quality import Quality
from text2grad.critics.rules.source import Source
from text2grad.errors import UserError
from text2grad.schema import Example, Feedback, Message
from text2grad.text.words import parse_text

BAKERY = (
    "Rain kept most visitors at home on Saturday. Marta Lindgren opened her bakery in Falun all the same, and sold "
    "1,200 loaves before noon. The bakery stands in a former railway depot, which the town let to her for €300 a "
    "month. Her sister, who works at the World Health Organization, lent her about 40 per cent of the money. A second "
    "shop is planned for May."
)
SUMMARY = (
    "Marta Lindgren sold 1,200 loaves from her new bakery in Falun, a former depot that she rents for €300 a month."
)
DEFACTO = Path(os.environ.get("TEXT2GRAD_DATA", "../shared/data")) / "defacto" / "val.jsonl.gz"


def critique(summary: str, document: str = BAKERY, **options: int) -> Feedback:
    example = Example(id="it", prompt="Summarise.", completion=summary, meta={"document": document})
    return GroundingCritic(**options).critique([example])[0]


def score(summary: str, document: str = BAKERY) -> float:
    value = critique(summary, document).score
    assert value is not None
    return value


def marked(feedback: Feedback, summary: str) -> list[tuple[str, str, float]]:
    return [(span.label, summary[span.start : span.end], span.severity) for span in feedback.spans]


def sentences(document: str) -> list[str]:
    return re.split(r"(?<=[.!?]) (?=[A-ZÀ-Ý])", document)


# What it says


def test_the_critique_quotes_what_it_marks_and_names_what_is_missing():
    summary = SUMMARY.replace("Falun", "Stockholm")
    feedback = critique(summary)

    assert feedback.critique == (
        'It rightly reports "Marta Lindgren", "bakery" and "€300". The source does not name "Stockholm". '
        'It leaves out what the source says about "Falun", "World Health Organization" and "40 per cent".'
    )
    assert [(label, quote) for label, quote, _ in marked(feedback, summary)] == [
        ("good", "Marta Lindgren"),
        ("good", "bakery"),
        ("poor", "Stockholm"),
        ("good", "€300"),
    ]
    assert feedback.critic == "grounding"
    assert {span.critic for span in feedback.spans} == {"grounding"}


def test_the_score_is_the_product_of_the_factors_from_minus_one_to_one():
    factors = Quality(0.5, 1.0, 1.0, 1.0, 1.0, 0.5, 1.0, 1.0)

    assert factors.score == 2 * 0.25 - 1
    assert Quality.worst().score == -1
    assert factors._replace(faithful=1.0, concise=1.0).score == 1


def test_blame_says_where_the_factors_lost_what_they_lost():
    source = Source(parse_text(BAKERY))
    summary = parse_text(f"{SUMMARY.replace('Falun', 'Stockholm')} It was sold for 7,319 cakes in the")
    findings, _, quality = judge_summary(summary, source, limit=20)

    blame = {
        kind: sum(finding.severity for finding in findings if finding.kind in kinds)
        for kind, kinds in {
            "errors": ("number", "name", "word", "claim", "uncertain"),
            "unfinished": ("unfinished",),
            "padding": ("padding",),
        }.items()
    }
    assert blame["errors"] == pytest.approx(1 - quality.faithful, abs=0.01)
    assert blame["unfinished"] == pytest.approx(0.05 * (1 - quality.finished), abs=0.01)
    assert blame["padding"] == pytest.approx(0.05 * (1 - (20 / len(summary.words)) ** 2), abs=0.01)


def test_invented_numbers_weigh_more_than_names_and_names_more_than_words():
    summary = SUMMARY.replace("1,200", "1,500").replace("Falun", "Stockholm").replace("loaves", "cakes")

    severities = {quote: severity for label, quote, severity in marked(critique(summary), summary) if label == "poor"}

    assert severities["1,500 cakes"] > severities["Stockholm"] > severities.get("rents", 0)


def test_one_more_error_lowers_the_score():
    one = SUMMARY.replace("1,200", "1,500")
    two = one.replace("Falun", "Stockholm")

    assert score(SUMMARY) > score(one) + 0.2 > score(two) + 0.4


def test_a_wrong_first_name_takes_the_merit_from_the_right_last_name():
    summary = SUMMARY.replace("Marta", "Anna")
    quotes = [(label, quote) for label, quote, _ in marked(critique(summary), summary)]

    assert ("poor", "Anna") in quotes
    assert ("good", "Lindgren") not in quotes


def test_a_fact_is_praised_once():
    twice = f"{SUMMARY} For the bakery in Falun, Marta Lindgren pays €300 to the town."
    praised = [quote for label, quote, _ in marked(critique(twice), twice) if label == "good"]

    assert praised == ["Marta Lindgren", "bakery", "Falun", "€300"]


def test_copying_earns_no_praise_but_what_is_copied_is_not_missing():
    second = sentences(BAKERY)[1]
    feedback = critique(second)

    assert {span.label for span in feedback.spans} == {"poor"}
    assert "It copies the source instead of summing it up in" in feedback.critique
    assert not {"Marta Lindgren", "Falun"} & {omission.text for omission in feedback.omissions}


def test_silence_lacks_a_statement_and_every_fact():
    feedback = critique("")

    assert feedback.spans == []
    assert [omission.text for omission in feedback.omissions] == [
        "a complete statement",
        "Marta Lindgren",
        "Falun",
        "bakery",
        "€300 a month",
        "World Health Organization",
        "40 per cent",
    ]
    assert sum(omission.severity for omission in feedback.omissions) == pytest.approx(1, abs=0.01)
    assert feedback.score == -1


def test_the_weakest_point_of_a_good_summary_is_marked_lightly():
    summary = "The bakery of Marta Lindgren in Falun stands in a railway depot."
    (poor,) = [(quote, severity) for label, quote, severity in marked(critique(summary), summary) if label == "poor"]

    assert "Its weakest point is" in critique(summary).critique
    assert poor[1] < 0.1


def test_facts_beyond_the_length_limit_are_too_late():
    late = "It was in the town and it was in the depot and " + SUMMARY[0].lower() + SUMMARY[1:]

    assert "Falun" in [omission.text for omission in critique(late, max_words=12).omissions]
    assert "Falun" not in [omission.text for omission in critique(late).omissions]


# Where the source comes from


def test_without_a_document_the_prompt_is_the_source():
    as_text = Example(id="a", prompt=BAKERY, completion=SUMMARY)
    as_chat = Example(id="b", prompt=[Message(role="user", content=BAKERY)], completion=SUMMARY)

    first, second = GroundingCritic().critique([as_text, as_chat])

    assert first.score == second.score == score(SUMMARY)


@pytest.mark.parametrize("document", ["", " \n…", None, ["a", "list"]])
def test_an_empty_source_fails_its_own_example_only(document):
    empty = Example(id="no-7", prompt="Summarise.", completion=SUMMARY, meta={"document": document})
    fine = Example(id="fine", prompt=BAKERY, completion=SUMMARY)

    failed, judged = GroundingCritic().critique([empty, fine])

    assert (failed.status, failed.score, failed.spans) == ("failed", None, [])
    assert failed.error is not None
    assert failed.error.startswith("no source text")
    assert judged.status == "ok"


def test_the_reference_is_never_seen():
    with_reference = Example(id="a", prompt=BAKERY, completion=SUMMARY, reference="Something else altogether.")

    assert GroundingCritic().critique([with_reference])[0] == critique(SUMMARY)


def test_a_limit_below_one_word_is_refused():
    with pytest.raises(UserError, match="max_words is 0"):
        GroundingCritic(max_words=0)


# What cannot be won by cheating. Each policy takes (document, reference, all references, random numbers).


def first_words(document, reference, others, rng):
    return " ".join(reference.split()[: rng.randint(3, 5)])


def silence(document, reference, others, rng):
    return ""


def one_more_source_sentence(document, reference, others, rng):
    return f"{reference} {rng.choice(sentences(document))}"


def two_more_source_sentences(document, reference, others, rng):
    return f"{reference} {' '.join(sentences(document)[-2:])}"


def saying_it_twice(document, reference, others, rng):
    return f"{reference} {reference}"


def first_sentence(document, reference, others, rng):
    return sentences(document)[0]


def first_sentence_with_small_edits(document, reference, others, rng):
    words = sentences(document)[0].split()
    return " ".join(word for i, word in enumerate(words) if i % 7 != 5)


def two_first_sentences(document, reference, others, rng):
    return " ".join(sentences(document)[:2])


def whole_document(document, reference, others, rng):
    return document


def key_words_of_the_reference(document, reference, others, rng):
    return " ".join(word.text for word in parse_text(reference).words if word.is_content) + "."


def key_facts_with_commas(document, reference, others, rng):
    return ", ".join(fact.text for fact in key_facts(parse_text(document))) + "."


def key_facts_with_articles(document, reference, others, rng):
    return "The " + " and the ".join(fact.text for fact in key_facts(parse_text(document))) + "."


def key_facts_with_full_stops(document, reference, others, rng):
    return ". ".join(fact.text for fact in key_facts(parse_text(document))) + "."


def invented_name_and_number(document, reference, others, rng):
    renamed = re.sub(r"(?<=[a-z,] )[A-ZÀ-Ý]\w+", "Brenzik", reference, count=1)
    return re.sub(r"\d[\d,.]*\d|\d", "7319", renamed, count=1)


def somebody_elses_summary(document, reference, others, rng):
    return rng.choice([other for other in others if other != reference])


POLICIES = [
    first_words,
    silence,
    one_more_source_sentence,
    two_more_source_sentences,
    saying_it_twice,
    first_sentence,
    first_sentence_with_small_edits,
    two_first_sentences,
    whole_document,
    key_words_of_the_reference,
    key_facts_with_commas,
    key_facts_with_articles,
    key_facts_with_full_stops,
    invented_name_and_number,
    somebody_elses_summary,
]


def held_out() -> list[tuple[str, str]]:
    lines = files("text2grad").joinpath("data/quickstart_texts/heldout.jsonl").read_text(encoding="utf-8").splitlines()
    return [(record["document"], record["reference"]) for record in map(json.loads, lines)]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.__name__)
def test_a_good_summary_beats(policy):
    rng = random.Random(0)
    pairs = held_out()
    references = [reference for _, reference in pairs]
    cheats = [score(policy(document, reference, references, rng), document) for document, reference in pairs]
    honest = [score(reference, document) for document, reference in pairs]

    assert mean(good - bad for good, bad in zip(honest, cheats, strict=True)) > 0.5
    assert mean(good > bad for good, bad in zip(honest, cheats, strict=True)) >= 0.9


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.__name__)
def test_the_bakerys_summary_beats(policy):
    other = (
        "Bees kept in Surabaya turned blue from the dyed syrup of a sweet factory, which has paid 12 million rupiah."
    )

    assert score(SUMMARY) > score(policy(BAKERY, SUMMARY, [SUMMARY, other], random.Random(0)))


def test_a_clumsy_attempt_beats_silence():
    assert score("The bakery of Marta Lindgren is in a depot in the town.") > score("") + 1


def test_words_of_the_source_in_no_order_are_worth_next_to_nothing():
    rng = random.Random(0)
    words = SUMMARY.rstrip(".").split()
    rng.shuffle(words)

    assert score(" ".join(words) + ".") < -0.8


def test_marks_on_good_summaries_are_sparse():
    shares = []
    for document, reference in held_out():
        spans = critique(reference, document).spans
        shares.append(sum(span.end - span.start for span in spans) / len(reference))

    assert 0.1 < mean(shares) < 0.35
    assert max(shares) < 0.7


@pytest.mark.skipif(not DEFACTO.is_file(), reason="needs DeFacto under TEXT2GRAD_DATA")
def test_summaries_that_people_corrected_score_higher():
    with gzip.open(DEFACTO, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in islice(lines, 200)]
    corrected = [row for row in rows if row["has_error"] and row["feedback"]["summary"].strip()]
    gains = [
        score(row["feedback"]["summary"], row["article"]) - score(row["candidate"], row["article"]) for row in corrected
    ]

    assert mean(gains) > 0.3
    assert sum(gain > 0 for gain in gains) > 4 * sum(gain < 0 for gain in gains)


# What holds for any text

ODDITIES = [
    "the",
    "of",
    "and",
    "7,319",
    "Zorbanium",
    "\n",
    "-",
    "•",
    ".",
    "!",
    "’s",
    "3 million",
    "U.S.",
    "İ",
    "e\u0301",
    "🙂",
]
WORDS = st.sampled_from([*BAKERY.split(), *ODDITIES])
ANY_TEXT = st.one_of(st.text(max_size=200), st.lists(WORDS, max_size=60).map(" ".join))


@settings(max_examples=300, deadline=None)
@given(summary=ANY_TEXT, document=st.one_of(st.just(BAKERY), ANY_TEXT))
def test_feedback_is_well_formed_for_any_text(summary, document):
    feedback = critique(summary, document)
    assert feedback == critique(summary, document)
    if feedback.status == "failed":
        return

    ends = [0, *(span.end for span in feedback.spans)]
    for span, previous_end in zip(feedback.spans, ends, strict=False):
        assert previous_end <= span.start < span.end <= len(summary)
    covered = sum(span.end - span.start for span in feedback.spans)
    assert covered <= max(COVERAGE_OF_SHORT_TEXT, COVERAGE * len(summary))

    for span in feedback.spans:
        assert span.phrase is not None
        quote = feedback.critique[slice(*span.phrase)]
        marked_text = summary[span.start : span.end]
        assert marked_text.startswith(quote.removesuffix("…"))
    for omission in feedback.omissions:
        assert omission.phrase is not None
        assert feedback.critique[slice(*omission.phrase)] == omission.text
    assert -1 <= feedback.score <= 1
    assert sum(span.severity for span in feedback.spans if span.label == "good") <= 0.6 + 1e-9
    if not parse_text(summary).words:
        assert feedback.score == -1
