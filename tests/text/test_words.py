from text2grad.text.words import consecutive_runs, parse_text, parse_word


def quotes(text: str) -> list[str]:
    return [word.text for word in parse_text(text).words]


def test_words_keep_their_offsets():
    text = "The café’s   owner\npaid €6.4 million."

    assert [(word.start, word.end) for word in parse_text(text).words] == [
        (0, 3),
        (4, 10),
        (13, 18),
        (19, 23),
        (24, 36),
    ]


def test_numbers_come_with_sign_scale_and_suffix():
    assert quotes("€6.4 million, 12,600, 71st at 9 am, 40% of the 1990s, 11-9, twenty-five, two million") == [
        "€6.4 million", "12,600", "71st", "at", "9 am", "40%", "of", "the", "1990s", "11", "9", "twenty-five",
        "two million",
    ]  # fmt: skip


def test_spellings_of_a_number_share_a_value():
    for group in (
        ["1200", "1,200", "$1,200", "1.2 thousand"],
        ["6.4 million", "€6.4m", "6,400,000", "6.400.000"],
        ["40", "40%", "forty"],
        ["3", "three", "third", "3rd"],
        ["25", "twenty-five", "25th"],
        ["11:30", "11.30"],
    ):
        values = [set(parse_word(number).values) for number in group]
        assert set.intersection(*values), group


def test_an_m_is_metres_or_millions():
    assert parse_word("7m").values == (7, 7_000_000)


def test_ordinary_words_are_no_numbers():
    assert not any(parse_word(word).is_number for word in ("tenor", "ones", "weight", "H2O", "Seq2Seq"))


def test_sentences_end_at_stops_and_line_breaks_but_not_at_abbreviations():
    text = parse_text('Dr. Smith of the U.S. met J. Doe. "Well!" It cost 3.5 euros\nin total')

    assert [text.words[sentence.start].text for sentence in text.sentences] == ["Dr", "Well", "It", "in"]


def test_an_empty_text_has_neither_words_nor_sentences():
    text = parse_text(" …\n")
    assert (text.words, text.keys, text.sentences, text.names) == ((), (), (), ())


def test_capitals_tell_acronyms_and_months_from_function_words():
    assert [word.is_content for word in parse_text("he told us it may").words] == [False, True, False, False, False]
    assert [word.is_content for word in parse_text("the US, the U.S., IT and May").words] == [
        False, True, False, True, True, False, True,
    ]  # fmt: skip


def found(text: str) -> list[str]:
    parsed = parse_text(text)
    return [text[parsed.words[name.start].start : parsed.words[name.stop - 1].end] for name in parsed.names]


def test_names_are_runs_of_capitals_with_a_particle_between():
    text = "Yesterday Inês Falcato, of the Bank of Lisbon, met Wanjiru Kamotho-Otieno at the Col de Serrière on Monday."
    assert found(text) == [
        "Yesterday Inês Falcato",
        "Bank of Lisbon",
        "Wanjiru Kamotho-Otieno",
        "Col de Serrière",
        "Monday",
    ]


def test_the_capital_that_starts_a_sentence_makes_no_name():
    assert found("Bakers rose early. They sold bread to NATO. WHO paid.") == ["NATO", "WHO"]


def test_runs_are_maximal():
    assert list(consecutive_runs([2, 3, 4, 7, 9, 10])) == [range(2, 5), range(7, 8), range(9, 11)]
    assert list(consecutive_runs([])) == []
