"""Columns of a table of comments are recognised by their names, and only by these."""

from __future__ import annotations

import pytest

from text2grad.critics.human.columns import guess_columns, require_columns
from text2grad.errors import UserError


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        ("prompt completion comment", {"prompt": "prompt", "completion": "completion", "comment": "comment"}),
        ("Question Answer Feedback", {"prompt": "Question", "completion": "Answer", "comment": "Feedback"}),
        (
            "ID,User question,Model_Answer,Reviewer comment,comment author,Verdict,topic",
            {
                "prompt": "User question",
                "completion": "Model_Answer",
                "comment": "Reviewer comment",
                "label": "Verdict",
                "annotator": "comment author",
                "id": "ID",
            },
        ),
        ("Frage,Antwort,Kommentar", {}),
        # the column of that name wins over one that ends like it
        ("old answer,answer,note", {"completion": "answer", "comment": "note"}),
        # a word within a longer name tells where nothing else does, for what is needed only
        (
            "Nr,Guest asked,What the model said,Your remarks (in English),end of chat",
            {"prompt": "Guest asked", "completion": "What the model said", "comment": "Your remarks (in English)"},
        ),
        ("messages,notes", {"prompt": "messages", "comment": "notes"}),
    ],
)
def test_guesses(there, expected):
    assert guess_columns(there.split("," if "," in there else " ")) == expected


def test_given_columns_take_precedence_and_must_exist():
    there = ["question", "answer", "comment", "reason"]
    assert guess_columns(there, {"comment": "reason"})["comment"] == "reason"
    with pytest.raises(UserError, match="no column resaon for the comment; there are question, answer"):
        guess_columns(there, {"comment": "resaon"})
    with pytest.raises(UserError, match='"coment" is no field of a comment; did you mean "comment"'):
        guess_columns(there, {"coment": "reason"})


def test_what_is_required():
    require_columns({"prompt": "a", "completion": "b", "label": "c"}, "abc")
    require_columns({"prompt": "messages", "comment": "c"}, "abc")
    with pytest.raises(UserError, match="no column completion; there are a, b: name it, as in --column completion=b"):
        require_columns({"prompt": "a", "comment": "c"}, ["a", "b"])
    with pytest.raises(
        UserError,
        match="no column prompt, comment; there are Die Frage, a, Urteil: name them, as in --column prompt='Die Frage'",
    ):
        require_columns({"completion": "a"}, ["Die Frage", "a", "Urteil"])
