from text2grad.critics.rules.copying import copied_runs
from text2grad.critics.rules.source import Source
from text2grad.text.words import parse_text

SENTENCE = (
    "The ferry company will run eight extra crossings a day between Barreiro and Lisbon from March until the end of May"
)
SOURCE = Source(parse_text(f"{SENTENCE}. Fares will stay the same."))


def copied(summary: str) -> list[str]:
    text = parse_text(summary)
    return [summary[text.words[run.start].start : text.words[run.stop - 1].end] for run in copied_runs(text, SOURCE)]


def test_twelve_words_in_a_row_are_copied_and_eleven_are_not():
    words = SENTENCE.split()
    assert copied(f"Now {' '.join(words[2:14])}.") == [" ".join(words[2:14])]
    assert copied(f"Now {' '.join(words[2:13])}.") == []


def test_shorter_runs_are_copied_where_the_caller_says_so():
    text = parse_text("It moves. Fares will stay the same, eight extra crossings.")
    assert copied_runs(text, SOURCE, min_run=4) == [range(2, 7)]
    assert copied_runs(text, SOURCE, min_run=3) == [range(2, 7), range(7, 10)]


def test_changed_dropped_and_added_words_do_not_hide_a_copy():
    edited = SENTENCE.replace("eight", "nine").replace("Barreiro and ", "").replace("until", "up until")
    assert copied(edited) == [edited]


def test_the_sources_words_in_another_order_are_no_copy():
    assert copied("From March until May, eight extra crossings between Lisbon and Barreiro will run every day.") == []


def test_shorter_texts_than_a_seed_are_no_copy():
    assert copied("") == copied("Fares will") == []
    assert copied_runs(parse_text("Fares will stay the same."), Source(parse_text("Fares"))) == []
