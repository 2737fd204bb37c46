from text2grad.align.learned.passages import relevant

SOURCE = "The mayor spoke. Rail workers went on strike in Leeds. It rained. The strike lasted a week!"


def test_the_sentences_that_share_most_stay_in_their_order():
    assert relevant(SOURCE, "a week of strikes in Leeds", 12) == (
        "Rail workers went on strike in Leeds. The strike lasted a week!"
    )


def test_the_best_sentence_stays_even_if_it_is_too_long():
    assert relevant(SOURCE, "workers in Leeds on strike", 1) == "Rail workers went on strike in Leeds."


def test_what_has_room_is_kept_whole():
    assert relevant(SOURCE, "nothing shared", 100) == SOURCE


def test_an_empty_source():
    assert relevant("", "anything", 10) == ""
