from text2grad.align.comment_aligner import CommentAligner
from text2grad.schema import Example, Feedback, Omission, Span

ANSWER = "A 62-year-old woman died in Leeds."


def align(prompt="A woman died.", **feedback):
    example = Example(id="1", prompt=prompt, completion=ANSWER, feedback=Feedback(critic="anna", **feedback))
    (found,) = CommentAligner().critique([example])
    return found


def test_quotations_come_first():
    found = align(critique='"in Leeds" is not supported, nor is her age.')
    assert [(ANSWER[span.start : span.end], span.match) for span in found.spans] == [("in Leeds", "exact")]
    assert found.spans[0].critic == "anna"


def test_without_quotations_what_it_is_about():
    found = align(critique="The age is invented.")
    assert [ANSWER[span.start : span.end] for span in found.spans] == ["62-year-old"]
    assert (found.critique, found.critic, found.status) == ("The age is invented.", "anna", "ok")


def test_what_is_found_nowhere_is_a_failure_that_keeps_its_words():
    critique = 'Cricket in Karachi, "said the umpire at lunch", was cancelled by the board of Zimbabwe.'
    found = align(prompt=ANSWER, critique=critique)
    assert (found.status, found.spans, found.critique) == ("failed", [], critique)
    assert found.unmatched == ["said the umpire at lunch"]


def test_an_omission_needs_no_place():
    found = align(prompt=ANSWER, critique="Cricket in Karachi was cancelled.", omissions=[Omission(text="cricket")])
    assert (found.status, found.spans) == ("ok", [])


def test_feedback_that_needs_nothing_is_unchanged():
    spans = [Span(start=0, end=1, label="poor")]
    for given in ({"critique": "Bad.", "spans": spans}, {"critique": " "}, {"critique": "x", "scores": [(0, 1, -1.0)]}):
        assert align(**given) == Feedback(critic="anna", **given)


def test_a_record_without_feedback_fails_alone():
    examples = [
        Example(id="1", prompt="", completion=ANSWER),
        Example(id="2", prompt="", completion=ANSWER, feedback=Feedback(critique="The age is wrong.", critic="b")),
    ]
    first, second = CommentAligner().critique(examples)
    assert (first.status, second.status) == ("failed", "ok")
