from text2grad.critics.rules.marks import Finding, Mark, gravest, place
from text2grad.text.words import parse_text

TEXT = parse_text("aa bb cc dd ee ff")


def test_the_first_claim_wins_and_a_later_one_takes_the_longest_free_run():
    findings = [Finding("word", range(1, 2), 0.25, reach=1), Finding("copied", range(6), 0.6, reach=3)]

    assert place(findings, TEXT) == [Mark("word", 3, 5, 0.25), Mark("copied", 6, 14, 0.6)]


def test_a_finding_without_a_free_word_is_dropped():
    findings = [Finding("name", range(2), 0.7, reach=2), Finding("word", range(1, 2), 0.25, reach=1)]

    assert place(findings, TEXT) == [Mark("name", 0, 5, 0.7)]


def test_no_mark_is_graver_than_one():
    assert place([Finding("copied", range(2), 1.7, reach=2)], TEXT)[0].severity == 1.0


def test_the_gravest_marks_fit_the_budget():
    light, grave, long = Mark("word", 0, 4, 0.25), Mark("number", 5, 9, 0.8), Mark("copied", 10, 30, 0.6)

    assert gravest([light, grave, long], budget=8) == [light, grave]
    assert gravest([light, grave, long], budget=24) == [grave, long]
    assert gravest([light, grave, long], budget=28) == [light, grave, long]


def test_only_a_told_fact_is_good():
    assert Mark("told", 0, 1, 0.5).label == "good"
    assert Mark("padding", 0, 1, 0.5).label == "poor"
