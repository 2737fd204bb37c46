from text2grad.critics.rules.marks import Mark
from text2grad.critics.rules.wording import Critique


def test_an_empty_critique_says_so():
    assert Critique().text == "There is nothing to praise and nothing to blame."


def test_every_item_has_its_phrase():
    critique = Critique()
    summary = "Ana sold 7 red red cakes"
    numbers = critique.mark("number", summary, [Mark("number", 9, 10, 0.8)])
    words = critique.mark("word", summary, [Mark("word", s, e, 0.25) for s, e in ((11, 14), (15, 18), (19, 24))])
    missing = critique.miss(["Falun", "€300", "May"])

    assert critique.text == (
        'The source does not give the number "7". The source does not support "red" and "cakes". '
        'It leaves out what the source says about "Falun", "€300" and "May".'
    )
    said = [critique.text[slice(*phrase)] for phrase in [*numbers, *words, *missing]]
    assert said == ["7", "red", "red", "cakes", "Falun", "€300", "May"]
    assert words[0] == words[1]


def test_line_breaks_are_named_not_quoted():
    critique = Critique()
    phrases = critique.mark("layout", "a\nb\nc", [Mark("layout", 1, 2, 0.2), Mark("layout", 3, 4, 0.2)])

    assert critique.text == "It is not running text; it has line breaks or list marks."
    assert {critique.text[slice(*phrase)] for phrase in phrases} == {"line breaks or list marks"}


def test_long_quotes_are_shortened():
    critique = Critique()
    (phrase,) = critique.mark("word", "x" * 500, [Mark("word", 0, 500, 0.25)])

    assert critique.text[slice(*phrase)] == "x" * 79 + "…"


def test_what_is_lacking_is_named():
    critique = Critique()
    phrase = critique.lack("a complete statement")

    assert critique.text == "It lacks a complete statement."
    assert critique.text[slice(*phrase)] == "a complete statement"
