import numpy as np
import pytest

from text2grad.align.learned.word_features import compute_word_features

COMMENT = "Remove the fourth day. The source says fifth."
ANSWER = "Trains face a fourth day of strikes in Leeds."
SOURCE = "Trains face strikes in Leeds on the fifth day."


def column(name, comment=COMMENT, answer=ANSWER, source=SOURCE):
    words, names, matrix = compute_word_features(comment, answer, source)
    return {word.text: value for word, value in zip(words, matrix[:, names.index(name)].tolist(), strict=True)}


def test_one_row_per_word_one_column_per_name():
    words, names, matrix = compute_word_features(COMMENT, ANSWER, SOURCE)
    assert matrix.shape == (len(words), len(names)) == (9, len(set(names)))
    assert np.isfinite(matrix).all()


def test_mentions_and_their_roles():
    assert {word for word, value in column("blamed").items() if value} == {"fourth", "day"}
    assert not any(column("wanted").values())
    assert column("wanted", answer="a fifth day")["fifth"] == 1.0


def test_runs_count_the_words_in_a_row_that_the_comment_has_too():
    runs = column("run")
    assert (runs["fourth"], runs["day"], runs["Leeds."]) == (2, 2, 0)
    assert column("source_run")["Trains"] == column("source_run")["face"] == 2


def test_a_run_ends_where_the_match_ends():
    assert column("run", "the red big car", "see the red big dog")["see"] == 0
    assert column("run", "the red big car", "see the red big dog")["dog"] == 0


def test_novel_is_what_the_source_does_not_have():
    assert {word for word, value in column("novel").items() if value} == {"a", "fourth", "of"}


def test_without_a_source_novelty_is_missing_not_zero():
    assert all(np.isnan(value) for value in column("novel", source=None).values())
    assert column("blamed", source=None)["fourth"] == 1.0


def test_the_comment_asks_for_an_age_and_the_word_is_one():
    ages = column("about_age", "The age is made up.", "A 62-year-old woman died")
    assert ages["62-year-old"] > ages["woman"] > 0
    assert not any(column("about_age", "The place is made up.", "A 62-year-old woman died").values())


def test_neighbours_are_shifted_columns():
    assert column("kind[+1]")["fourth"] == column("kind")["day"]
    assert column("kind[-1]")["Trains"] == -1.0


@pytest.mark.parametrize(("comment", "answer"), [("", "One word"), ("Wrong.", "!"), ("Wrong.", "-- one --")])
def test_odd_texts_have_features_too(comment, answer):
    words, names, matrix = compute_word_features(comment, answer, None)
    assert matrix.shape == (len(words), len(names))


def test_distances_to_what_is_blamed():
    _, names, matrix = compute_word_features('"red" is wrong', "a barn, red and old, burned", None)
    columns = {name: column.tolist() for name, column in zip(names, matrix.T, strict=True)}
    assert columns["blamed"] == [0, 0, 1, 0, 0, 0]
    assert columns["blame_before"] == [20, 20, 0, 1, 2, 3]
    assert columns["blame_after"] == [2, 1, 0, 20, 20, 20]


def test_pairs_of_words_that_the_source_has():
    _, names, matrix = compute_word_features("Hm.", "a red barn — burned down", "The red barn burned. It fell down.")
    columns = {name: column.tolist() for name, column in zip(names, matrix.T, strict=True)}
    assert columns["source_before"] == [-1, 0, 1, -1, -1, 0]
    assert columns["source_after"] == [0, 1, -1, -1, 0, -1]
    assert columns["source_run"] == [0, 3, 3, 0, 3, 1]
