from text2grad.align.learned.asking import quotations

ANSWER = "The treaty was signed in Paris in 1921."


def ask_with(reply, asked=None):
    def ask(question):
        if asked is not None:
            asked.append(question)
        return reply

    return [ANSWER[match.start : match.end] for match in quotations("The date is wrong.", ANSWER, ask)]


def test_lines_of_the_reply_are_found_in_the_answer():
    assert ask_with('- "in 1921"\n2. signed in paris\n') == ["in 1921", "signed in Paris"]


def test_the_question_holds_answer_and_comment():
    asked = []
    ask_with("NONE", asked)
    assert ANSWER in asked[0]
    assert "The date is wrong." in asked[0]


def test_none_and_inventions_are_no_places():
    assert ask_with("NONE") == []
    assert ask_with("a completely different sentence about football") == []
