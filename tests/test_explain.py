import json
from pathlib import Path

import pytest

from text2grad.cli.display import explanation_table
from text2grad.errors import UserError
from text2grad.explain import Explanation, explain, locate_comment
from text2grad.models.loading import load_model, load_tokenizer
from text2grad.schema import Feedback, Omission, Span

SUMMARY_SOURCE = (
    "Householders who own a Brightwell BK-20 electric kettle should stop using it at once. The maker has received 17 "
    "reports of handles that came loose when the kettle was full, and four people were scalded."
)


def changes(explanation: Explanation) -> dict[str, list[float]]:
    by_sign: dict[str, list[float]] = {"poor": [], "good": [], "rest": []}
    for token in explanation.tokens:
        kind = "poor" if token.reward < 0 else "good" if token.reward > 0 else "rest"
        by_sign[kind].append(token.logprob_after - token.logprob_before)
    return by_sign


@pytest.mark.model
@pytest.mark.parametrize(
    ("prompt", "completion", "comment", "poor", "good"),
    [
        ("When do we meet?", "We meet on Friday at noon.", 'The meeting was not on "Friday".', {"Friday"}, set()),
        (
            f"Summarise: {SUMMARY_SOURCE}",
            "Brightwell recalls its kettles after 17 reports of loose handles and nine deaths.",
            'The "17 reports" are right, but "nine deaths" is wrong: four people were scalded.',
            {"nine deaths"},
            {"17 reports"},
        ),
    ],
)
def test_blamed_tokens_go_down_praised_tokens_go_up_and_the_rest_moves_less(
    smollm2: str, prompt: str, completion: str, comment: str, poor: set[str], good: set[str]
) -> None:
    feedback, _ = locate_comment(comment, completion, prompt)
    explanation = explain(load_model(smollm2), load_tokenizer(smollm2), prompt, completion, feedback)
    assert {completion[s.start : s.end] for s in explanation.spans if s.label == "poor"} == poor
    assert {completion[s.start : s.end] for s in explanation.spans if s.label == "good"} == good
    moved = changes(explanation)
    assert all(change < 0 for change in moved["poor"])
    assert all(change > 0 for change in moved["good"])
    rewarded = [abs(change) for change in moved["poor"] + moved["good"]]
    rest = [abs(change) for change in moved["rest"]]
    assert sum(rest) / len(rest) < 0.5 * sum(rewarded) / len(rewarded)


def test_explanation_is_plain_data(tiny_model: Path) -> None:
    completion = "The lazy fox 🦊 jumps."
    feedback, _ = locate_comment('Not "lazy".', completion, "Write.")
    explanation = explain(load_model(tiny_model), load_tokenizer(tiny_model), "Write.", completion, feedback)
    record = json.loads(json.dumps(explanation.to_dict()))
    assert [t["text"] for t in record["tokens"] if t["reward"] < 0]
    assert "".join(t["text"] for t in record["tokens"] if t["reward"] < 0).strip() == "lazy"
    assert record["tokens"][-1]["start"] == record["tokens"][-1]["end"] == len(explanation.completion)
    assert record["unmatched"] == []


@pytest.mark.model
def test_the_wrong_word_goes_down_the_right_word_goes_up_and_the_rest_is_held(smollm2: str) -> None:
    completion = "We meet on Friday at noon."
    span = Span(start=11, end=17, label="poor", replacement="Monday")
    feedback = Feedback(critique="The meeting was on Monday, not Friday.", spans=[span], critic="human")
    explanation = explain(load_model(smollm2), load_tokenizer(smollm2), "When do we meet?", completion, feedback)
    moved = changes(explanation)
    (wrong,) = moved["poor"]
    (correction,) = explanation.corrections
    (right,) = correction.tokens
    assert (explanation.tokens[correction.token].text, right.text) == (" Friday", " Monday")
    assert wrong <= -0.3
    assert right.logprob_after - right.logprob_before >= 0.3
    rest = [abs(change) for change in moved["rest"]]
    assert sum(rest) / len(rest) <= 0.3 / 5


def test_corrections_are_plain_data_with_rows_of_their_own(tiny_model: Path) -> None:
    completion = "The lazy fox jumps"
    spans = [
        Span(start=4, end=8, label="poor", replacement="quick 🦊"),
        Span(start=13, end=18, label="poor", replacement="jumps"),
    ]
    missing = [Omission(text="where", insert_at=18, insertion=" high")]
    feedback = Feedback(critique="Not lazy.", spans=spans, omissions=missing, critic="human")
    explanation = explain(load_model(tiny_model), load_tokenizer(tiny_model), "Write.", completion, feedback)
    record = json.loads(json.dumps(explanation.to_dict()))
    assert [span["replacement"] for span in record["spans"]] == ["quick 🦊", "jumps"]
    assert record["omissions"][0]["insertion"] == " high"
    assert record["refused_corrections"] == 1, "the second replacement changes nothing"
    first, last = record["corrections"]
    assert "".join(dict.fromkeys(t["text"] for t in first["tokens"])).strip().startswith("quick")
    assert {token["start"] for token in last["tokens"]} == {18}
    for correction in (first, last):
        before, after = (sum(t[f"logprob_{when}"] for t in correction["tokens"]) for when in ("before", "after"))
        assert after > before
    table = explanation_table(explanation)
    assert table.row_count == len(record["tokens"]) + sum(len(c["tokens"]) for c in record["corrections"])


def test_a_correction_that_does_not_fit_the_context_is_refused(tiny_model: Path) -> None:
    model, completion = load_model(tiny_model), "The lazy fox jumps"
    insertion = " high" * model.config.max_position_embeddings
    missing = [Omission(text="where", insert_at=18, insertion=insertion)]
    feedback = Feedback(spans=[Span(start=4, end=8, label="poor")], omissions=missing, critic="human")
    explanation = explain(model, load_tokenizer(tiny_model), "Write.", completion, feedback)
    assert (explanation.corrections, explanation.refused_corrections) == ([], 1)


def test_a_comment_without_a_match_is_an_error() -> None:
    with pytest.raises(UserError, match="does not say which words"):
        locate_comment("The recipe for soup in Zanzibar is wrong.", "We meet on Friday at noon.", "When?")
    with pytest.raises(UserError, match="not found: Tuesday"):
        locate_comment('It was not "Tuesday".', "We meet at noon.", "When?")


def test_a_comment_on_code_needs_no_quote() -> None:
    program = (
        "def factorial(n):\n    result = 1\n    for i in range(1, n + 1):\n        result *= i\n    return result\n"
    )
    feedback, _ = locate_comment(
        "The code fails to handle negative inputs.", program, "Write a function that gives n!."
    )
    blamed = sum(span.end - span.start for span in feedback.spans)
    assert {span.label for span in feedback.spans} == {"poor"}
    assert 0 < blamed < len(program) / 2
