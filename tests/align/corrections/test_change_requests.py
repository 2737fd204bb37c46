"""Requests as they are worded."""

from __future__ import annotations

import pytest

from text2grad.align.corrections.change_requests import Term, find_requests


@pytest.mark.parametrize(
    ("comment", "kind", "old", "new"),
    [
        ('Replace "a b" with "c".', "replace", "a b", "c"),
        ("Replace the words 'a, b' with 'c; d'.", "replace", "a, b", "c; d"),
        ("Substitute c for a.", "replace", "a", "c"),
        ("Change the date from May to June in the answer.", "replace", "May", "June"),
        ('"a" → "b"', "replace", "a", "b"),
        ("Remove the information about his age from the summary.", "remove", "his age", None),
        ("Remove the age, since it is not given.", "remove", "the age", None),
        ("The age should be removed.", "remove", "The age", None),
        ("Please delete the part about the fact that he left.", "remove", "he left", None),
    ],
)
def test_the_parts_of_a_request(comment: str, kind: str, old: str, new: str | None) -> None:
    (request,) = find_requests(comment)

    def text(term: Term | None) -> str | None:
        return comment[term.start : term.end] if term else None

    assert (request.kind, text(request.old), text(request.new)) == (kind, old, new)
    assert comment[slice(*request.phrase)] == comment


def test_every_place_where_a_request_may_be_split_is_an_alternative() -> None:
    comment = "Replace come up with a plan with work on a plan."
    requests = find_requests(comment)
    assert [comment[r.old.start : r.old.end] for r in requests if r.old] == ["come up", "come up with a plan"]


def test_each_sentence_has_its_own_request() -> None:
    kinds = [request.kind for request in find_requests('Remove "a". Fine; add "b" after "c" and replace "d" with "e".')]
    assert kinds == ["remove", "insert", "replace"]


def test_which_of_two_is_wrong_may_be_open() -> None:
    (request,) = find_requests("It says Friday instead of Monday.")
    assert request.is_ambiguous
    (request,) = find_requests("It was Friday, not Monday.")
    assert not request.is_ambiguous


@pytest.mark.parametrize(
    ("comment", "old", "new"),
    [
        ("Pepper? I think you mean paprika.", "Pepper", "paprika"),
        ("Nice. Next Monday? You must mean Tuesday!", "Next Monday", "Tuesday"),
        ("It confuses Mars with Venus.", "Mars", "Venus"),
        ("You mixed up Henry IV and Henry VI", "Henry IV", "Henry VI"),
    ],
)
def test_who_says_what_was_meant_asks_for_it(comment: str, old: str, new: str) -> None:
    (request,) = find_requests(comment)
    assert request.old is not None
    assert request.new is not None
    assert [comment[term.start : term.end] for term in (request.old, request.new)] == [old, new]


@pytest.mark.parametrize("comment", ["It confuses cause and effect.", "What do you mean? I see.", "You mean well."])
def test_who_names_nothing_asks_for_nothing(comment: str) -> None:
    assert find_requests(comment) == []


@pytest.mark.parametrize(
    "comment", ["", "Fine.", "Do not remove it.", "Never replace a with b.", "It is removed from sale."]
)
def test_other_comments_ask_for_nothing(comment: str) -> None:
    assert find_requests(comment) == []
