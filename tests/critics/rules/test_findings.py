import pytest

from text2grad.critics.rules.findings import (
    Finding,
    FindingsWriter,
    PlacedFinding,
    place_findings,
    select_most_severe,
    spread,
    total_severity,
)
from text2grad.critics.rules.grounding import REMARKS
from text2grad.schema import Omission, Span
from text2grad.text.words import parse_text

TEXT = parse_text("aa bb cc dd ee ff")


def test_the_first_claim_wins_and_a_later_one_takes_the_longest_free_run():
    findings = [Finding("word", range(1, 2), 0.25, max_words=1), Finding("copied", range(6), 0.6, max_words=3)]

    assert place_findings(findings, TEXT) == [PlacedFinding("word", 3, 5, 0.25), PlacedFinding("copied", 6, 14, 0.6)]


def test_a_finding_without_a_free_word_is_dropped():
    findings = [Finding("name", range(2), 0.7, max_words=2), Finding("word", range(1, 2), 0.25, max_words=1)]

    assert place_findings(findings, TEXT) == [PlacedFinding("name", 0, 5, 0.7)]


def test_no_finding_is_more_severe_than_one():
    assert place_findings([Finding("copied", range(2), 1.7, max_words=2)], TEXT)[0].severity == 1.0


def test_a_loss_is_spread_by_weight():
    findings = spread("word", [(range(2), 3.0), (range(4, 5), 1.0)], loss=0.8)

    assert [(finding.words, finding.max_words) for finding in findings] == [(range(2), 2), (range(4, 5), 1)]
    assert [finding.severity for finding in findings] == pytest.approx([0.6, 0.2])
    assert spread("word", [(range(2), 3.0)], loss=0.0) == spread("word", [], loss=0.5) == []


def test_the_most_severe_findings_are_selected_up_to_the_coverage():
    light, grave, long = (
        PlacedFinding("word", 0, 4, 0.25),
        PlacedFinding("number", 5, 9, 0.8),
        PlacedFinding("copied", 10, 30, 0.6),
    )

    assert select_most_severe([light, grave, long], max_characters=8) == [light, grave]
    assert select_most_severe([light, grave, long], max_characters=24) == [grave, long]
    assert select_most_severe([light, grave, long], max_characters=28) == [light, grave, long]


def test_only_facts_and_correct_answers_are_praise():
    assert {kind for kind in [*REMARKS, "correct", "relevant"] if PlacedFinding(kind, 0, 1, 0.5).label == "good"} == {
        "fact",
        "correct",
        "relevant",
    }


def test_an_empty_critique_says_so():
    feedback = FindingsWriter("it").scored_feedback()

    assert feedback.critique == "There is nothing to praise and nothing to blame."
    assert feedback.score == 0


def test_every_item_has_its_phrase():
    writer = FindingsWriter("it")
    summary = "Ana sold 7 red red cakes"
    places = ((11, 14), (15, 18), (19, 24))
    findings = [PlacedFinding("word", *place, 0.25) for place in places] + [PlacedFinding("number", 9, 10, 0.8)]
    writer.add_findings(findings, summary, REMARKS)
    writer.add_omissions("It leaves out what the source says about", [("Falun", 0.3), ("€300", 0.3), ("May", 0.3)])

    feedback = writer.scored_feedback()

    assert feedback.critique == (
        'The source does not give the number "7". The source does not support "red" and "cakes". '
        'It leaves out what the source says about "Falun", "€300" and "May".'
    )
    phrases = [item.phrase for item in [*feedback.spans, *feedback.omissions]]
    assert [feedback.critique[slice(*phrase)] for phrase in phrases if phrase] == [
        *("7", "red", "red", "cakes"),
        *("Falun", "€300", "May"),
    ]
    assert feedback.spans[1].phrase == feedback.spans[2].phrase
    assert [span.start for span in feedback.spans] == [9, 11, 15, 19]
    assert feedback.score == total_severity(feedback.spans, feedback.omissions) == -2.45


def test_praise_counts_for_the_score_and_blame_and_omissions_against_it():
    spans = [Span(start=0, end=1, label="good", severity=0.5), Span(start=1, end=2, label="poor", severity=0.7)]

    assert total_severity(spans, [Omission(text="x", severity=0.3)]) == -0.5


def test_long_quotes_are_shortened():
    writer = FindingsWriter("it")
    writer.add_findings([PlacedFinding("word", 0, 500, 0.25)], "x" * 500, REMARKS)
    writer.add_omissions("It should have said", [("y" * 500, 1.0)], shorten=True)

    assert writer.text == f'The source does not support "{"x" * 79}…". It should have said "{"y" * 79}…".'
    assert writer.omissions[0].text == "y" * 500


def test_an_omission_can_be_named_without_quotation_marks():
    writer = FindingsWriter("it")
    writer.add_omissions("It lacks", [("a complete statement", 1.0)], quote="")

    assert writer.text == "It lacks a complete statement."
    assert writer.text[slice(*writer.omissions[0].phrase or ())] == "a complete statement"
