import pytest

from text2grad.align.learned.roles import Role, parse_mentions
from text2grad.text.whitespace import part_key


def role(comment, word):
    return next(mention.role for mention in parse_mentions(comment) if mention.key == part_key(word.lower()))


@pytest.mark.parametrize(
    ("comment", "blamed", "wanted"),
    [
        ("Replace the information about Leeds with the information about York.", "Leeds", "York"),
        ("Change the fourth to the fifth.", "fourth", "fifth"),
        ("The summary says Leeds, but the article says York.", "Leeds", "York"),
        ("It should be York instead of Leeds.", "Leeds", "York"),
    ],
)
def test_what_is_wrong_and_what_is_wanted(comment, blamed, wanted):
    assert role(comment, blamed) is Role.BLAMED
    assert role(comment, wanted) is Role.WANTED


@pytest.mark.parametrize(
    "comment",
    ["The source does not mention Leeds.", "Leeds is not mentioned.", "It makes up Leeds.", "Remove Leeds."],
)
def test_blame_before_and_after_its_cue(comment):
    assert role(comment, "Leeds") is Role.BLAMED


def test_without_a_cue_a_word_is_neutral():
    assert role("Something about Leeds.", "Leeds") is Role.NEUTRAL


def test_a_new_sentence_begins_anew():
    assert role("It is wrong. Then comes Leeds.", "Leeds") is Role.NEUTRAL


def test_words_about_text_and_function_words_are_no_content():
    content = [mention.key for mention in parse_mentions("The summary says that Leeds won.") if mention.is_content]
    assert content == [part_key("leeds"), part_key("won")]


def test_quoted_words_are_marked():
    quoted = {mention.key for mention in parse_mentions('The word "sharply" is wrong.') if mention.is_quoted}
    assert quoted == {part_key("sharply")}
