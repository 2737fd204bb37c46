from collections.abc import Iterable

import pytest

from text2grad.critics.rules import faults
from text2grad.critics.rules.findings import Finding
from text2grad.critics.rules.source import Source
from text2grad.text.words import parse_text

SOURCE = Source(
    parse_text("Inês Falcato said that the ferry company will run eight extra crossings a day from 3 March.")
)


def quotes(summary: str, findings: Iterable[Finding]) -> list[str]:
    words = parse_text(summary).words
    return [summary[words[finding.words[0]].start : words[finding.words[-1]].end] for finding in findings]


def test_only_the_unknown_part_of_a_name_is_unsupported():
    summary = "The director Jo Falcato spoke to Ana Reis on Monday."
    text = parse_text(summary)

    assert quotes(summary, faults.unsupported_names(text, text.names, SOURCE)) == ["Jo", "Ana Reis", "Monday"]


def test_names_and_numbers_are_not_unsupported_words_too():
    summary = "Jo Reis said that 20 ferries crossed the river."
    text = parse_text(summary)

    assert quotes(summary, faults.unsupported_words(text, text.names, SOURCE)) == ["river"]
    assert quotes(summary, faults.unsupported_numbers(text, SOURCE)) == ["20"]


@pytest.mark.parametrize(
    ("summary", "filler"),
    [
        ("Here is a summary of the text: ferries run.", "Here is a summary of the text"),
        ("Sure, ferries run.", "Sure"),
        ("The text discusses ferries.", "The text discusses"),
        ("In this article, the author describes ferries.", "In this article, the author describes"),
        ("In summary, ferries run.", "In summary"),
    ],
)
def test_talk_about_the_text_is_filler(summary, filler):
    assert quotes(summary, faults.fillers(parse_text(summary), SOURCE)) == [filler]


def test_a_source_that_talks_so_itself_allows_it():
    source = Source(parse_text("This paper presents a ferry."))

    assert list(faults.fillers(parse_text("The paper presents a ferry."), source)) == []
    assert list(faults.fillers(parse_text("The ferry company presents itself."), SOURCE)) == []


@pytest.mark.parametrize(
    ("summary", "repeated"),
    [
        ("The ban starts in June, and the ban starts in June.", ["the ban starts in June"]),
        ("The ban starts in June. It is the the end.", ["the"]),
        (
            "Lorries cross the pass in June. In June, a pass is crossed by lorries.",
            ["In June, a pass is crossed by lorries"],
        ),
        ("The ban starts in June. The ban will end in May.", []),
        ("What he had had was that that was.", []),
        ("The player played.", []),
    ],
)
def test_repetition(summary, repeated):
    assert quotes(summary, faults.repetitions(parse_text(summary))) == repeated


@pytest.mark.parametrize(
    "summary",
    [
        "Ferries to Lisbon.",
        "Ferry company crossings Lisbon March director fares euros.",
        "Lisbon, the ferry, eight crossings, a day in March, the director, and the fares.",
        "The ferry and the crossing and the March and the director and the fare.",
    ],
)
def test_what_is_no_sentence(summary):
    assert len(faults.non_sentences(parse_text(summary))) == 1


@pytest.mark.parametrize(
    "summary",
    [
        "The company will run eight extra ferries from March.",
        "Ferry director Inês Falcato raised fares, the company said.",
        "The company plans eight crossings a day.",
        "Tram driver Jarmila Koutná, 46, won the national senior rapid chess title with 7.5 points from nine games.",
        "They swim, run, ride and climb in the hills above the lake.",
        "A new ferry company for the people of the south bank of the river.",
    ],
)
def test_what_is_a_sentence(summary):
    assert faults.non_sentences(parse_text(summary)) == []


@pytest.mark.parametrize(
    ("summary", "broken"),
    [
        ("The ferry of and the of Lisbon was a.", ["of and", "the of"]),
        ("The company bought the.", ["the"]),
        ("Blocks A to D of the in-house list are the best of all.", []),
        ("The of Lisbon ferry was an is.", ["The of", "an is"]),
    ],
)
def test_broken_grammar(summary, broken):
    assert quotes(summary, faults.broken_grammar(parse_text(summary))) == broken


@pytest.mark.parametrize("summary", ["It ends.", "It ends!\n", 'He said "it ends."', "…"])
def test_finished(summary):
    assert list(faults.unfinished(parse_text(summary))) == []


def test_unfinished():
    assert quotes("It ends. It does", faults.unfinished(parse_text("It ends. It does"))) == ["does"]
